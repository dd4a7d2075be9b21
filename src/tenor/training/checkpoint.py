"""Checkpoints: safetensors files and a JSON file beside them that names their hashes and is written last.

A checkpoint without its JSON, or whose bytes do not match it, does not exist; the newest that matches wins. Ranks that
hold a model together save a part each at the same time; who loads a checkpoint sees the parts as one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from tenor.store.atomic import canonical, write_bytes
from tenor.training.groups import Alone, Group

HASH_BYTES = 32


@dataclass(frozen=True)
class Checkpoint:
    """Tensors (weights and optimizer state) and the numbers that go with them."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int, row: Group | None = None) -> None:
    """Every rank of the row saves its part; the first writes the index once it has the hashes of all. A part that is
    not finite (ValueError) or cannot be written (OSError) leaves no checkpoint: every rank raises."""
    row = row or Alone()
    try:
        own, problem = _save_part(folder, checkpoint, row.rank), None
    except (OSError, ValueError) as error:
        own, problem = bytes(HASH_BYTES), error
    every = row.gather(torch.tensor(list(own))).view(row.size, HASH_BYTES)
    if problem is not None:
        raise problem
    if lost := [rank for rank, part in enumerate(every) if not part.any()]:
        raise OSError(f"worker {lost[0]} did not save its part")
    if row.rank == 0:
        parts = [bytes(part.tolist()).hex() for part in every]
        index = {"step": checkpoint.step, "parts": parts, "values": checkpoint.values}
        write_bytes(folder / f"{_stem(checkpoint.step)}.json", _seal(index))
        _prune(folder, keep)


def _save_part(folder: Path, checkpoint: Checkpoint, rank: int) -> bytes:
    if not are_finite(checkpoint.tensors):
        raise ValueError("weights are not finite")
    folder.mkdir(exist_ok=True)
    data = save_tensors({name: tensor.cpu().contiguous() for name, tensor in checkpoint.tensors.items()})
    write_bytes(folder / _part_name(_stem(checkpoint.step), rank), data)
    return hashlib.sha256(data).digest()


def _stem(step: int) -> str:
    return f"step-{step:010d}"


def _part_name(stem: str, rank: int) -> str:
    return f"{stem}.part-{rank}.safetensors" if rank else f"{stem}.safetensors"


def are_finite(tensors: Mapping[str, Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())


def newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest valid checkpoint, and why newer ones were passed over."""
    refused: list[str] = []
    for index in sorted(folder.glob("step-*.json"), reverse=True):
        try:
            return _load(index), refused
        except (OSError, ValueError, KeyError) as error:
            refused.append(f"{index.name}: {error}")
    return None, refused


def _load(index: Path) -> Checkpoint:
    sealed = index.read_bytes()
    described = json.loads(sealed)["index"]
    if _seal(described) != sealed:
        raise ValueError("the index does not match its hash")
    tensors: dict[str, Tensor] = {}
    for rank, expected in enumerate(described["parts"]):
        data = index.with_name(_part_name(index.stem, rank)).read_bytes()
        if hashlib.sha256(data).hexdigest() != expected:
            raise ValueError("the file does not match its hash")
        tensors |= load_tensors(data)
    return Checkpoint(int(described["step"]), tensors, described["values"])


def _seal(index: dict[str, Any]) -> bytes:
    """The one spelling of an index, with its own hash: a changed byte anywhere shows."""
    return canonical({"index": index, "sha256": hashlib.sha256(canonical(index)).hexdigest()})


def _prune(folder: Path, keep: int) -> None:
    """Drop all but the newest; the index goes first, so that no index is left without its tensors."""
    for index in sorted(folder.glob("step-*.json"))[:-keep]:
        index.unlink(missing_ok=True)
    indexed = {index.stem for index in folder.glob("step-*.json")}
    for left in folder.glob(".step-*.tmp"):  # by a process that was killed; all parts of today have their names
        left.unlink(missing_ok=True)
    for tensors in folder.glob("step-*.safetensors"):
        if tensors.name.partition(".")[0] not in indexed:
            tensors.unlink(missing_ok=True)


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """A hash of names, shapes, types and bytes, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        total.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        total.update(tensor.numpy().tobytes())
    return total.hexdigest()
