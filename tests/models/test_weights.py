"""Weights that are written piece by piece and read into memory that exists already."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tenor.errors import RunError
from tenor.models import weights as module
from tenor.models.weights import pack_weights, read_weights, write_weights

WEIGHTS = {
    "b": torch.arange(35, dtype=torch.float32).reshape(7, 5) / 3,
    "a": torch.full((4,), -1.5),
}
SHAPES = {name: tuple(tensor.shape) for name, tensor in WEIGHTS.items()}


def test_pieces_make_the_file_that_safetensors_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", 12)
    write_weights(tmp_path / "pieces", WEIGHTS)
    (tmp_path / "whole").write_bytes(pack_weights(WEIGHTS))
    for found in (load_file(tmp_path / "pieces"), read_weights(tmp_path / "pieces", SHAPES)):
        assert set(found) == set(WEIGHTS) and all(torch.equal(found[name], WEIGHTS[name]) for name in WEIGHTS)
    files = [(tmp_path / name).read_bytes() for name in ("pieces", "whole")]
    assert len({file[file.index(module.HASH.encode()) :][:90] for file in files}) == 1, "the hashes differ"


def test_a_changed_number_does_not_match_the_hash(tmp_path: Path) -> None:
    write_weights(tmp_path / "file", WEIGHTS)
    data = bytearray((tmp_path / "file").read_bytes())
    data[-2] ^= 1
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(RunError, match="do not match their hash"):
        read_weights(tmp_path / "file", SHAPES)


def test_tensors_are_read_into_given_memory(tmp_path: Path) -> None:
    write_weights(tmp_path / "file", WEIGHTS)
    into = {name: torch.full_like(tensor, 9.0) for name, tensor in WEIGHTS.items()}
    read_weights(tmp_path / "file", SHAPES, into)
    assert all(torch.equal(into[name], WEIGHTS[name]) for name in WEIGHTS)
    write_weights(tmp_path / "double", {name: tensor.double() for name, tensor in WEIGHTS.items()})
    with pytest.raises(RunError, match="F64"):
        read_weights(tmp_path / "double", SHAPES, into)
