"""The folder of word vectors: what is written, and damaged or hostile folders that are refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import tenor
from tenor.embedding.vectors import Vectors, load_vectors, save_vectors
from tenor.errors import TenorError

WORDS = tuple(f"w{n}" for n in range(30))
MATRIX = np.random.default_rng(0).normal(size=(30, 16)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "vectors"
    path.mkdir()
    save_vectors(path, Vectors(WORDS, MATRIX), vars(tenor.EmbedSettings(dim=16)), {"words": 300, "loss": 0.25})
    return path


def test_the_folder_is_plain_files(folder: Path) -> None:
    assert sorted(file.name for file in folder.iterdir()) == [
        "README.md",
        "config.json",
        "vectors.safetensors",
        "vocab.json",
    ]
    np.testing.assert_array_equal(load_file(folder / "vectors.safetensors")["vectors"].numpy(), MATRIX)
    found = load_vectors(folder)
    assert tuple(found.words) == WORDS and found.matrix.tobytes() == MATRIX.tobytes()
    card = (folder / "README.md").read_text()
    assert "30 words of 16 numbers" in card and "300 words" in card and "0.2500" in card


def truncate(folder: Path) -> None:
    file = folder / "vectors.safetensors"
    os.truncate(file, file.stat().st_size - 8)


def flip_a_bit(folder: Path) -> None:
    data = bytearray((folder / "vectors.safetensors").read_bytes())
    data[-5] ^= 1
    (folder / "vectors.safetensors").write_bytes(data)


def put_nan(folder: Path) -> None:
    matrix = MATRIX.copy()
    matrix[3, 4] = np.nan
    save_file({"vectors": torch.from_numpy(matrix)}, folder / "vectors.safetensors")  # without a hash


def other_width(folder: Path) -> None:
    save_file({"vectors": torch.zeros(30, 15)}, folder / "vectors.safetensors")


def promise_much(folder: Path) -> None:
    header = json.dumps({"vectors": {"dtype": "F32", "shape": [10**12, 16], "data_offsets": [0, 64 * 10**12]}})
    (folder / "vectors.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_words": 10**12}))


def garbage(folder: Path) -> None:
    (folder / "vectors.safetensors").write_bytes(os.urandom(1000))


def link_out(folder: Path) -> None:
    (folder / "vectors.safetensors").unlink()
    (folder / "vectors.safetensors").symlink_to("/etc/passwd")


def drop_words(folder: Path) -> None:
    (folder / "vocab.json").unlink()


def drop_vectors(folder: Path) -> None:
    (folder / "vectors.safetensors").unlink()


def garbage_config(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff{")


DAMAGES = (truncate, flip_a_bit, put_nan, other_width, promise_much, garbage, link_out, drop_words, drop_vectors)


@pytest.mark.parametrize("damage", [*DAMAGES, garbage_config])
def test_damaged_and_hostile_folders_are_refused(folder: Path, damage: Callable[[Path], None]) -> None:
    damage(folder)
    with pytest.raises(TenorError) as caught:
        load_vectors(folder)
    message = str(caught.value)
    assert str(folder) in message and "\n" not in message and ";" in message, "no place, or no remedy"
