"""A run folder from a stranger gives the same results as plain PyTorch, or is refused in one line at no cost."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import call_tenor
from helpers.models import WORDS, change_config, change_weights, write_model
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import tenor
from tenor.errors import RunError
from tenor.training.runs.folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_model(tmp_path / "run")


def refused(run: Path, words: str) -> None:
    with pytest.raises(RunError, match=words) as raised:
        tenor.load(run)
    assert str(run) in str(raised.value) and len(str(raised.value)) < 400 + len(str(run))
    assert "\n" not in str(raised.value)


def test_a_deep_part_predicts_as_plain_pytorch_does(run: Path) -> None:
    change_config(run, model__wide=None)
    kept = {name: w for name, w in load_file(run / "model.safetensors").items() if not name.startswith("wide.")}
    save_file({**kept, "combination.scales": torch.tensor([2.0])}, run / "model.safetensors")
    weights = {name.removeprefix("deep."): weight for name, weight in kept.items()}
    lstm = torch.nn.LSTM(3, 4)
    lstm.load_state_dict({name.removeprefix("forwards.0."): w for name, w in weights.items() if "forwards" in name})
    tokens = torch.tensor([2 + WORDS.index(word) for word in ["not", "good", "film"]])
    states = lstm(weights["embedding.weight"][tokens][:, None])[0][:, 0]
    pooled = torch.cat([states.max(0).values, states.mean(0)])
    expected = torch.sigmoid(2.0 * (weights["head.weight"] @ pooled + weights["head.bias"])).item()
    assert tenor.load(run).probabilities(["not good film"])[0, 1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("changes", [{"cell": "qrnn", "bidirectional": True}, {"cell": "gru", "num_classes": 5}])
def test_other_models_load_too(tmp_path: Path, changes: dict[str, Any]) -> None:
    model = tenor.load(write_model(tmp_path / "run", layers=2, **changes))
    assert model.probabilities(["good"]).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["link", "device", "pipe", "folder", "large"])
def test_files_that_are_not_plain_files(run: Path, name: str, kind: str) -> None:
    file = run / name
    whole = file.read_bytes()
    file.unlink()
    if kind == "link":
        (run / "elsewhere").write_bytes(whole)
        file.symlink_to(run / "elsewhere")
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        with file.open("wb") as sparse:
            sparse.truncate(1 << 40)
    refused(run, r"symbolic link|not an ordinary file|bytes allowed")


def test_missing_files_are_named(run: Path, tmp_path: Path) -> None:
    (run / "model.safetensors").unlink()
    refused(run, r"model\.safetensors is missing; finish its training")
    with pytest.raises(RunError, match="is not a run folder"):
        tenor.load(tmp_path)


CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "hidden of another size": ({"model__deep__hidden": 5}, r"deep\.forwards\.0\.weight_ih_l0 has the shape"),
    "hidden is huge": ({"model__deep__hidden": 10**9}, "hidden"),
    "hidden of 400 digits": ({"model__deep__hidden": 10**400}, "64 bits"),
    "hidden is text": ({"model__deep__hidden": "4"}, "hidden"),
    "hidden is true": ({"model__deep__hidden": True}, "hidden"),
    "hidden is a fraction": ({"model__deep__hidden": 4.0}, "hidden"),
    "many layers": ({"model__deep__layers": 20_000}, "layers"),
    "two layers": ({"model__deep__layers": 2}, "has no tensor"),
    "no layers": ({"model__deep__layers": 0}, "layers"),
    "a huge vocabulary": ({"model__deep__vocab_size": 1 << 40}, "vocab_size"),
    "dropout not a number": ({"model__deep__dropout": float("nan")}, "NaN"),
    "dropout of 2": ({"model__deep__dropout": 2}, "dropout"),
    "unknown cell": ({"model__deep__cell": "transformer"}, "cell"),
    "cell is a list": ({"model__deep__cell": ["lstm"]}, "cell"),
    "unknown pooling": ({"model__deep__pooling": "sum"}, "pooling"),
    "bidirectional is text": ({"model__deep__bidirectional": "no"}, "bidirectional"),
    "unknown key of the model": ({"model__deep__attention": 8}, "unknown key 'attention'"),
    "no model": ({"model": []}, "model"),
    "no part": ({"model__wide": None, "model__deep": None}, "neither a wide nor a deep part"),
    "a deep part that is a list": ({"model__deep": [1]}, "'deep' is not an object"),
    "a deep part without words": ({"model__deep": {"hidden": 4}}, "'deep' has no vocab_size"),
    "no deep part": ({"model__deep": None}, "unknown tensor"),
    "no wide part": ({"model__wide": None}, "unknown tensor"),
    "a huge table": ({"model__wide__bits": 60}, "bits"),
    "another table": ({"model__wide__bits": 9}, r"wide\.importance has the shape"),
    "n-grams of 0 tokens": ({"model__wide__longest": 0}, "longest"),
    "length is text": ({"model__deep__length": "9"}, "length"),
    "other number of classes": ({"classes": ["a", "b", "c"]}, "3 names"),
    "classes twice": ({"classes": ["a", "a"]}, "classes"),
    "classes are numbers": ({"classes": [0, 1]}, "classes"),
    "classes are a text": ({"classes": "ab"}, "classes"),
    "a class with half a character": ({"classes": ["a", "\udcff"]}, "classes"),
    "labels of other classes": ({"labels": {"a": ["1"], "b": ["2"]}}, "labels"),
    "labels are a list": ({"labels": [1]}, "labels"),
    "labels of numbers": ({"labels": {"negative": [1], "positive": [2]}}, "labels"),
    "max_length is text": ({"max_length": "400"}, "max_length"),
    "max_length is huge": ({"max_length": 1 << 70}, "64 bits"),
    "max_length below 1": ({"max_length": 0}, "max_length"),
    "unknown cleaning": ({"tokeniser__clean": "stems"}, "clean"),
    "unknown rule": ({"tokeniser__stem": True}, "unknown key 'stem'"),
    "marks is text": ({"tokeniser__marks": "yes"}, "marks"),
    "stop words of numbers": ({"tokeniser__stopwords": [1]}, "stopwords"),
    "an empty stop word": ({"tokeniser__stopwords": [""]}, "stopwords"),
    "half a stop word": ({"tokeniser__stopwords": ["\udcff"]}, "stopwords"),
    "no tokeniser": ({"tokeniser": None}, "tokeniser"),
    "another vocabulary": ({"vocab_sha256": "0" * 64}, "vocab.json"),
    "vocabulary hash is a number": ({"vocab_sha256": 7}, "vocab.json"),
    "settings are a list": ({"settings": [1]}, "settings"),
    "another task": ({"settings__task": "points"}, "points"),
    "a task that is a list": ({"settings__task": ["reviews"]}, "task"),
    "a newer format": ({"format": 3}, "format 3.*newer version"),
    "an older format": ({"format": 1}, "format 1.*train it again"),
    "a format that is text": ({"format": "one"}, "format 'one'"),
    "an unknown setting": ({"settings": {"task": "reviews", "magic": 1}}, "unknown key 'magic'"),
}


@pytest.mark.parametrize(("changes", "words"), CONFIGS.values(), ids=CONFIGS.keys())
def test_wrong_values_of_the_config(run: Path, changes: dict[str, Any], words: str) -> None:
    change_config(run, **changes)
    refused(run, words)


@pytest.mark.parametrize("text", ["[]", "7", "", "{", "\xff", "[" * 100_000, '{"model": {}}', "{}"])
def test_a_config_that_is_not_one(run: Path, text: str) -> None:
    (run / "config.json").write_text(text, "latin-1")
    refused(run, "config.json")


@pytest.mark.parametrize(
    "words",
    [["a"] * 5, [1, 2, 3, 4, 5], "words", [*WORDS, "more"], WORDS[:4], [*WORDS[:4], ""], [*WORDS[:4], "\ud800"], None],
)
def test_a_vocabulary_that_is_not_the_model_s(run: Path, words: Any) -> None:
    (run / "vocab.json").write_text(json.dumps({"format": 1, "words": words}))
    refused(run, "vocab.json")


WEIGHTS: dict[str, tuple[dict[str, torch.Tensor], str]] = {
    "not a number": ({"deep__head__bias": torch.tensor([torch.nan])}, r"deep\.head\.bias.*not finite"),
    "infinite": ({"deep__head__bias": torch.tensor([-torch.inf])}, "not finite"),
    "another shape": ({"deep__head__bias": torch.zeros(2)}, r"deep\.head\.bias has the shape \[2\]"),
    "another type": ({"deep__head__bias": torch.zeros(1, dtype=torch.float64)}, "deep.head.bias.*F64"),
    "integers": ({"deep__head__bias": torch.zeros(1, dtype=torch.int32)}, "I32"),
    "one more": ({"extra": torch.zeros(1)}, "unknown tensor 'extra'"),
}


def test_a_word_that_no_tokeniser_makes_is_refused(tmp_path: Path) -> None:
    """Its character n-grams would take gigabytes for every review."""
    run = write_model(tmp_path / "run", words=["good", "bad", "long" * 1000])
    with pytest.raises(RunError, match="has a word of 4,000 characters, and a word has at most 64 bytes"):
        tenor.load(run)


@pytest.mark.parametrize(("changes", "words"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_wrong_weights(run: Path, changes: dict[str, torch.Tensor], words: str) -> None:
    change_weights(run, **changes)
    refused(run, words)


def test_a_missing_tensor_is_named(run: Path) -> None:
    weights = load_file(run / "model.safetensors")
    del weights["deep.head.bias"]
    save_file(weights, run / "model.safetensors")
    refused(run, r"has no tensor 'deep\.head\.bias'")


def _header(change: Callable[[dict[str, Any]], None], data: bytes) -> bytes:
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def _shift(header: dict[str, Any]) -> None:
    header["deep.head.bias"]["data_offsets"] = header["deep.embedding.weight"]["data_offsets"]


FILES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "a header of 2**60 bytes": lambda data: struct.pack("<Q", 1 << 60) + data[8:],
    "a header of nothing": lambda data: struct.pack("<Q", 0) + data[8:],
    "only a length": lambda data: data[:8],
    "a header that is a list": lambda data: struct.pack("<Q", 2) + b"[]",
    "overlapping tensors": lambda data: _header(_shift, data),
    "offsets of text": lambda data: _header(lambda h: h["deep.head.bias"].update(data_offsets="ab"), data),
    "offsets below 0": lambda data: _header(lambda h: h["deep.head.bias"].update(data_offsets=[-4, 0]), data),
    "a tensor that is a list": lambda data: _header(lambda h: h.update({"deep.head.bias": []}), data),
    "a type that is a list": lambda data: _header(lambda h: h["deep.head.bias"].update(dtype=["F32"]), data),
    "metadata that is a list": lambda data: _header(lambda h: h.update(__metadata__=[1]), data),
    "a hash that is a number": lambda data: _header(lambda h: h.update(__metadata__={"weights_sha256": 1}), data),
}


@pytest.mark.parametrize("change", FILES.values(), ids=FILES.keys())
def test_weights_files_that_are_damaged(run: Path, change: Callable[[bytes], bytes]) -> None:
    file = run / "model.safetensors"
    file.write_bytes(change(file.read_bytes()))
    refused(run, "model.safetensors")


def test_what_a_config_asks_for_is_not_allocated(run: Path) -> None:
    change_config(run, model__deep__hidden=6000)  # 0.6 GB of weights
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory use
    before = memory("VmRSS")
    refused(run, "has the shape|has no tensor")
    assert memory("VmHWM") - before < 200e6


def memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def test_every_flipped_byte_of_the_weights_is_noticed(run: Path) -> None:
    RunFolder(run).save_model(load_file(run / "model.safetensors"))
    with safe_open(run / "model.safetensors", "pt") as file:
        assert len(file.metadata()["weights_sha256"]) == 64
    expected = tenor.load(run).probabilities(["not good film"])
    whole = (run / "model.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", whole[:8])[0]
    for place in [*range(0, start, 7), *range(start, len(whole), 5)]:
        flipped = bytearray(whole)
        flipped[place] ^= 1
        (run / "model.safetensors").write_bytes(flipped)
        try:
            found = tenor.load(run).probabilities(["not good film"])
        except RunError:
            continue
        assert place < start, f"byte {place} was changed and nobody noticed"
        np.testing.assert_array_equal(found, expected)  # the name of the hash was hit, not what it protects


def test_the_commands_answer_in_one_line(run: Path, tmp_path: Path) -> None:
    (tmp_path / "reviews.txt").write_text("good film\n")
    change_weights(run, deep__head__bias=torch.tensor([torch.nan]))
    assert "not finite" in call_tenor("predict", run, tmp_path / "reviews.txt", "--json").failed(1)
    (run / "config.json").unlink()
    (run / "config.json").symlink_to("/dev/zero")
    assert "symbolic link" in call_tenor("evaluate", run, tmp_path / "reviews.txt").failed(1)


def test_probabilities_that_are_not_finite_are_not_printed(tmp_path: Path) -> None:
    run = write_model(tmp_path / "run", num_classes=3)
    change_weights(
        run, deep__head__weight=torch.full((3, 8), 3e38), deep__forwards__0__bias_ih_l0=torch.full((16,), 9.0)
    )
    with pytest.raises(RunError, match="not finite"):
        tenor.load(run).predict(["good film"])
