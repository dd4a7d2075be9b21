"""Errors: a setting is `batch_size` in Python and `--batch-size` on the command line; they cross process boundaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.command import run_tenor

import tenor
from tenor.engines import protocol
from tenor.engines.records import Json
from tenor.errors import MissingExtra, Stopped, StoreError, TenorError, UsageError, name_settings


def test_python_reads_settings_and_the_command_line_options(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cell cannot be 'transformer'; choose one of lstm"):
        tenor.TrainSettings(cell="transformer")
    with pytest.raises(UsageError, match=r"^batch_size cannot be 0; "):
        tenor.TrainSettings(batch_size=0)
    with pytest.raises(UsageError, match=r"^threads cannot be -1; "):
        tenor.EvaluateSettings(threads=-1)
    with pytest.raises(UsageError, match=r"^split cannot be 'all'; "):
        tenor.EvaluateSettings(split="all")
    said = run_tenor("train", "data", "--out", tmp_path / "run", "--batch-size", "0").failed(2)
    assert said.startswith("tenor: --batch-size cannot be 0; ")
    said = run_tenor("predict", "run", "-", "--threads", "-1").failed(2)
    assert said.startswith("tenor: --threads cannot be -1; ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--max-length is below 1", "max_length is below 1"),
        ("use --optimizer sgd, or omit --lr", "use optimizer sgd, or omit lr"),
        (
            "finish it with `tenor train … --resume`, or omit --resume",
            "finish it with `tenor train … --resume`, or omit resume",
        ),
        ("cannot be '--cell' here", "cannot be '--cell' here"),
        ("a--b and a -- b --- c", "a--b and a -- b --- c"),
    ],
)
def test_options_become_settings(text: str, expected: str) -> None:
    assert name_settings(text) == expected


def test_where_is_left_as_it_is() -> None:
    error = TenorError("wants --out", where="a --cell/file", remedy="give --out a folder")
    assert str(error) == "a --cell/file: wants out; give out a folder"
    assert error.for_command_line == "a --cell/file: wants --out; give --out a folder"


def test_a_library_s_message_keeps_no_full_stop_before_the_remedy() -> None:
    assert (
        str(TenorError("is damaged: not a parquet file.", remedy="fetch it"))
        == "is damaged: not a parquet file; fetch it"
    )


def _kinds(base: type[TenorError] = TenorError) -> list[type[TenorError]]:
    return [base, *(kind for sub in base.__subclasses__() for kind in _kinds(sub))]


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_every_error_crosses_a_process_boundary(kind: type[TenorError]) -> None:
    made = {
        MissingExtra: lambda: MissingExtra("--engine dask", "dask"),
        Stopped: lambda: Stopped(15, "saved a checkpoint; --resume continues from it"),
    }
    error = made.get(kind, lambda: kind("--lr cannot be 0", where=Path("run"), remedy="give --lr"))()
    again = TenorError.from_dict(json.loads(json.dumps(error.to_dict())))
    assert type(again) is kind and vars(again) == vars(error)
    assert (str(again), again.for_command_line) == (str(error), error.for_command_line)
    assert again.exit_code == error.exit_code


def test_an_error_of_an_unknown_class_stays_an_error() -> None:
    error = TenorError.from_dict({"kind": "os", "what": "broken", "where": None, "remedy": "repair it"})
    assert type(error) is TenorError and str(error) == "broken; repair it"


@pytest.mark.parametrize("error", [StoreError("is damaged", where="data"), Stopped(2), MissingExtra("spark", "spark")])
def test_engines_raise_the_error_of_a_worker(error: TenorError, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(stage: str, task: Json) -> Json:
        raise error

    monkeypatch.setattr(protocol, "call", fail)
    with pytest.raises(type(error)) as raised:
        protocol.unwrap(json.loads(json.dumps(protocol.answer("stage", {}))))
    assert vars(raised.value) == vars(error)
