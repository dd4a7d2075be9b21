"""A compact model: one small file that gives almost what the run gives, and is checked before it is used."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import call_tenor, run_tenor
from helpers.models import write_model
from helpers.training import run as train
from safetensors import safe_open

import tenor
from tenor.errors import RunError, StoreError, TenorError, UsageError
from tenor.models.arrays import pack_arrays, parse_arrays
from tenor.prediction.compact import _gaps, choose_ngrams, recalibrated
from tenor.runtime.compact import content_hash, read_compact
from tenor.runtime.read_run import read_run
from tenor.store.atomic import canonical

TEXTS = ["not good film", "", "zzz", "good " * 7 + "bad"]


@pytest.fixture(scope="module")
def wide(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wide") / "run"
    train(data, out, model="wide", epochs=2, test=False)
    return out


@pytest.mark.parametrize(
    "changes", [{"cell": "conv", "pooling": "max"}, {"cell": "gru", "num_classes": 5, "vocab_size": 7}], ids=str
)
def test_all_parts_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    monkeypatch.setattr("tenor.prediction.compact.SMALLEST", 8)  # so that matrices have a byte per number
    run = write_model(tmp_path / "run", **changes)
    made = tenor.export_model(run, tmp_path / "small.tenor", format="compact")
    assert made.ngrams == 256 and made.checked_rows == 0
    whole, small = tenor.load(run), tenor.load(tmp_path / "small.tenor")
    assert small.classes == whole.classes and small.config["max_length"] == 400
    np.testing.assert_allclose(small.predict_proba(TEXTS), whole.predict_proba(TEXTS), atol=0.02)
    assert (small.predict_proba(TEXTS) != whole.predict_proba(TEXTS)).any()


def test_numbers_are_close_to_those_of_the_run(wide: Path, tmp_path: Path) -> None:
    tenor.export_model(wide, tmp_path / "small.tenor", format="compact")
    own, other = read_run(wide).weights, tenor.load(tmp_path / "small.tenor").parts
    assert other.wide is not None
    known = own["wide.importance"] > 0
    assert ((other.wide.importance > 0) == known).all()
    high, low = own["wide.importance"][known].max(), own["wide.importance"][known].min()
    ratio = other.wide.importance[known] / own["wide.importance"][known]
    step = (high / low) ** (0.5 / 15)
    assert ratio.max() < 1.001 * step and ratio.min() > 0.999 / step
    adds, found = (t["i"] * t["w"][:, 0] for t in (
        {"i": own["wide.importance"], "w": own["wide.ngrams.weight"]},
        {"i": other.wide.importance, "w": other.wide.weight},
    ))  # fmt: skip
    largest = np.abs(adds).max()
    assert (np.abs(found - adds) <= 1.2 * np.sqrt(np.maximum(np.abs(adds), largest / 127**2) * largest) / 127).all()


def test_the_command_says_what_is_lost(wide: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.tenor"
    said = call_tenor("export", wide, "--format", "compact", "--ngrams", "3000", "--data", data, "--out", out, "--json")
    assert said.json["ngrams"] == 3000 and said.json["bytes"] == out.stat().st_size < 60_000
    rows = json.loads((data / "manifest.json").read_text())["splits"]["valid"]["rows"]
    assert said.json["checked_rows"] == rows and abs(said.json["accuracy_lost"]) < 0.05
    texts = tmp_path / "texts.txt"
    texts.write_text("not good at all\nwonderful\n")
    assert run_tenor("predict", out, texts).stdout.count("\n") == 2
    assert call_tenor("predict", out, texts, "--out", tmp_path / "found.csv", "--json").json["rows"] == 2
    valid = tenor.evaluate(out, data, tenor.EvaluateSettings(split="valid"))
    assert valid.accuracy == pytest.approx(said.json["accuracy"])
    with safe_open(out, "numpy") as file:  # an ordinary safetensors file
        assert json.loads(file.metadata()["config"])["classes"] == ["negative", "positive"]
    assert "--ngrams has no effect" in call_tenor(
        "export", wide, "--ngrams", "9", "--format", "onnx", "--out", tmp_path / "x"
    ).failed(2)


def test_the_ngrams_that_matter_are_kept() -> None:
    importance = np.array([0, 1, 2, 1, 1], np.float32)
    weights = {"wide.importance": importance, "wide.ngrams.weight": np.array([[9], [-3], [1], [2.5], [0.5]])}
    assert choose_ngrams(weights, None, 2).tolist() == [1, 3]
    assert choose_ngrams(weights, np.array([9, 1, 9, 2, 1], np.int32), 2).tolist() == [2, 3]
    assert choose_ngrams(weights, None, 0).tolist() == [1, 2, 3, 4]
    assert _gaps(np.array([0, 254, 255 + 254, 1529])) == bytes([1, 254, 255, 0, 255, 255, 255, 255, 0])


def test_logits_are_fitted_to_the_rows() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (20_000, 1))
    labels = (rng.random(20_000) < 1 / (1 + np.exp(-(2 * logits[:, 0] - 0.7)))).astype(np.int64)
    weights = {"combination.scales": np.array([3.0, 1.0]), "combination.shifts": np.array([0.5])}
    found = recalibrated(weights, logits, labels)
    np.testing.assert_allclose(found["combination.scales"], [6.0, 2.0], rtol=0.05)
    np.testing.assert_allclose(found["combination.shifts"], [0.5 * 2 - 0.7], atol=0.08)
    assert recalibrated(weights, logits, np.ones(20_000)) is weights


Change = Callable[[dict[str, Any], dict[str, str]], None]


def _bits(arrays: dict[str, Any], metadata: dict[str, str]) -> None:
    metadata["config"] = metadata["config"].replace('"bits": 8', '"bits": 26')


def _set(name: str, value: Any) -> Change:
    def change(arrays: dict[str, Any], metadata: dict[str, str]) -> None:
        arrays[name] = value

    return change


def packed(*values: int) -> Any:
    return np.frombuffer(zlib.compress(bytes(values)), np.uint8)


DAMAGE: dict[str, tuple[Change, str]] = {
    "a large table": (_bits, "need too much memory"),
    "many words": (_set("words", np.frombuffer(zlib.compress(b"a\n" * (200 << 20), 1), np.uint8)), "another length"),
    "words twice": (_set("words", np.frombuffer(zlib.compress(b"a\na"), np.uint8)), "not a vocabulary"),
    "other words": (_set("words", np.frombuffer(zlib.compress(b"a\nb"), np.uint8)), "not the vocabulary"),
    "no range": (_set("wide.range", np.array([0, 1, 1], np.float32)), "range"),
    "not a number": (_set("wide.range", np.array([1, 1, np.nan], np.float32)), "range"),
    "outside": (_set("wide.gaps", packed(*[2] * 256)), "outside its table"),
    "twice": (_set("wide.gaps", packed(1, *[0] * 255)), "outside its table"),
    "too few": (_set("wide.adds", packed(1, 2)), "another length"),
    "not packed": (_set("wide.gaps", np.arange(9, dtype=np.uint8)), "decompressed"),
    "infinite": (_set("combination.shifts", np.array([np.inf], np.float32)), "not finite"),
    "another shape": (_set("combination.shifts", np.zeros(2, np.float32)), "of the shape"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("small")
    tenor.export_model(write_model(folder / "run", cell="gru"), folder / "small.tenor", format="compact")
    return (folder / "small.tenor").read_bytes()


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_from_a_stranger(small: bytes, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("tenor.runtime.compact.VOCABULARY_BYTES", 1000)
    change, said = DAMAGE[name]
    arrays, metadata = parse_arrays(small, Path("small"))
    change(arrays, metadata)
    metadata["sha256"] = content_hash(arrays, metadata["config"])
    with pytest.raises(RunError, match=said):
        read_compact(pack_arrays(arrays, metadata), Path("small"))


@pytest.mark.parametrize("name", ["words", "wide.gaps"])
def test_a_few_bytes_do_not_become_very_many(small: bytes, name: str) -> None:
    arrays, metadata = parse_arrays(small, Path("small"))
    if name == "wide.gaps":
        metadata["config"] = metadata["config"].replace('"bits": 8', '"bits": 22')
    arrays[name] = np.frombuffer(zlib.compress(b"\n" * (3 << 20), 9), np.uint8)
    metadata["sha256"] = content_hash(arrays, metadata["config"])
    with pytest.raises(RunError, match=f"{name} has another length"):
        read_compact(pack_arrays(arrays, metadata), Path("small"))


def test_damaged_bytes(small: bytes, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for place in [0, 5, 9, *rng.integers(0, len(small), 60).tolist()]:
        broken = bytearray(small)
        broken[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(RunError):
            read_compact(bytes(broken), Path("small"))
    for size in (0, 7, 8, 100, len(small) - 1):
        with pytest.raises(RunError):
            read_compact(small[:size], Path("small"))
    link = tmp_path / "link.tenor"
    (tmp_path / "small.tenor").write_bytes(small)
    link.symlink_to(tmp_path / "small.tenor")
    with pytest.raises(RunError, match="symbolic link"):
        tenor.load(link)


def test_what_cannot_be_exported(wide: Path, data: Path, tmp_path: Path) -> None:
    def failing(kind: type[TenorError], said: str, **options: Any) -> None:
        with pytest.raises(kind, match=said):
            tenor.export_model(wide, tmp_path / "x", **{"format": "compact", **options})

    failing(UsageError, "does not know 'zip'", format="zip")
    failing(UsageError, "cannot be -1", ngrams=-1)
    other = tmp_path / "other"
    other.mkdir()
    manifest = json.loads((data / "manifest.json").read_text())
    (other / "manifest.json").write_bytes(canonical({**manifest, "vocab_sha256": "0" * 64}))
    failing(StoreError, "another vocabulary", data=other)
