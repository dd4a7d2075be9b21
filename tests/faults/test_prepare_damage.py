"""Outputs of tasks that a power cut has damaged are made again, and the result is the same to the byte."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from helpers.corpora import make_reviews, write_json_lines
from preparation.job.test_prepare import hashes

from tenor.corpus.scanning import blocks
from tenor.errors import Stopped
from tenor.preparation.job.folders import JobFolders
from tenor.preparation.job.outputs import finished, making, save_arrays, save_result
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages import mapping
from tenor.preparation.job.work_folder import ARRAYS, OUTPUTS, RESULT
from tenor.preparation.settings import PrepareSettings

ONE = PrepareSettings(workers=1)
FILES = 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("corpus")
    reviews = make_reviews(300)
    paths = [write_json_lines(folder / f"{n}.jsonl", reviews[n::FILES]) for n in range(FILES)]
    paths[1].write_bytes(paths[1].read_bytes() + b"not json\n")
    return paths


@pytest.fixture(scope="module")
def expected(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("expected") / "out"
    prepare(corpus, out, ONE)
    return hashes(out)


def _stopped(corpus: list[Path], out: Path) -> Path:
    """The outputs of a job that was stopped just before its result appeared."""

    def stop(*_: object) -> None:
        raise Stopped(9)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(JobFolders, "publish", stop)
        prepare(corpus, out, ONE)
    [outputs] = [path for path in (out.parent / ".out.preparing").iterdir() if path.is_dir()]
    return outputs


def _flip(path: Path) -> None:
    data = path.read_bytes()
    at = random.Random(0).randrange(len(data)) if data else 0
    path.write_bytes(data[:at] + bytes([data[at] ^ 1] if data else b"x") + data[at + 1 :])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] or b"x"),
    "zeros": lambda path: path.write_bytes(bytes(max(1, path.stat().st_size))),
    "garbage": lambda path: path.write_bytes(random.Random(0).randbytes(max(1, path.stat().st_size))),
    "one bit": _flip,
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_outputs_are_made_again(
    corpus: list[Path], expected: dict[str, str], tmp_path: Path, damage: str
) -> None:
    outputs = _stopped(corpus, tmp_path / "out")
    files = [path for name in OUTPUTS for path in (outputs / name).rglob("*") if path.is_file()]
    assert {path.relative_to(outputs).parts[0] for path in files} == set(OUTPUTS)
    for path in files:
        DAMAGES[damage](path)
    prepare(corpus, tmp_path / "out", ONE)
    assert hashes(tmp_path / "out") == expected
    assert json.loads((tmp_path / "out" / "rejects.jsonl").read_text())["line"] == 101
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", OUTPUTS)
def test_only_what_is_damaged_is_made_again(
    corpus: list[Path], expected: dict[str, str], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = _stopped(corpus, tmp_path / "out")
    folder = sorted((outputs / name).iterdir())[0]
    for path in folder.iterdir():
        if path.name != RESULT or name == "pieces":  # a piece without rejected rows has no other file with bytes
            path.write_bytes(bytes(path.stat().st_size))  # the file is there, its bytes never reached the disk
    read: list[str] = []
    original = mapping.read_piece
    monkeypatch.setattr(mapping, "read_piece", lambda piece: read.append(piece.source.path) or original(piece))
    prepare(corpus, tmp_path / "out", ONE)
    assert read == ([str(corpus[0])] if name in ("pieces", "slices") else [])
    assert hashes(tmp_path / "out") == expected


def test_a_damaged_slice_of_a_large_piece_is_made_again(
    corpus: list[Path], expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece has several slices, and one task."""
    monkeypatch.setattr(mapping, "SLICE_TOKENS", 500)
    monkeypatch.setattr(blocks, "BLOCK", 4096)
    outputs = _stopped(corpus, tmp_path / "out")
    slices = sorted((outputs / "slices").iterdir())
    assert len(slices) >= 3 * FILES, "one slice holds all rows: the test shows nothing"
    for name in set(OUTPUTS) - {"pieces", "slices"}:  # as if the job had been stopped before the slices were read
        shutil.rmtree(outputs / name)
    for damaged in (slices[FILES], slices[-1]):
        (damaged / ARRAYS).write_bytes(bytes((damaged / ARRAYS).stat().st_size))
    prepare(corpus, tmp_path / "out", ONE)
    assert hashes(tmp_path / "out") == expected


@dataclass(frozen=True)
class _Arrays:
    some: npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Result:
    value: int


def test_an_output_made_twice_is_that_of_the_first_unless_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "stage" / "000000"

    def make(value: int) -> None:
        with making(path) as folder:
            save_arrays(folder, _Arrays(np.arange(3)))
            save_result(folder, _Result(value))

    make(1)
    make(2)
    assert finished(path, _Result) == _Result(1)
    (path / ARRAYS).write_bytes(b"damaged")
    make(3)
    assert finished(path, _Result) == _Result(3)
    make(4)
    values = json.loads((path / RESULT).read_text())
    (path / RESULT).write_text(
        json.dumps({**values, "values": {"velue": 3}})
    )  # the arrays are whole, the result is not
    assert finished(path, _Result) is None and not list(path.parent.iterdir())
    make(5)
    (path / RESULT).write_text(json.dumps({"value": 5}))  # without hashes
    assert finished(path, _Result) is None and not list(path.parent.iterdir())
