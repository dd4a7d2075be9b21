"""Checkpoints: a safetensors file and a JSON file beside it that names its hash and is written last.

A checkpoint without its JSON, or whose bytes do not match it, does not exist; the newest that matches wins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from tenor.store.atomic import canonical, write_bytes


@dataclass(frozen=True)
class Checkpoint:
    """Tensors (weights and optimizer state) and the numbers that go with them."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    folder.mkdir(exist_ok=True)
    data = save_tensors({name: tensor.cpu().contiguous() for name, tensor in checkpoint.tensors.items()})
    stem = folder / f"step-{checkpoint.step:010d}"
    write_bytes(stem.with_suffix(".safetensors"), data)
    index = {"step": checkpoint.step, "sha256": hashlib.sha256(data).hexdigest(), "values": checkpoint.values}
    write_bytes(stem.with_suffix(".json"), _seal(index))
    _prune(folder, keep)


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
    data = index.with_suffix(".safetensors").read_bytes()
    if hashlib.sha256(data).hexdigest() != described["sha256"]:
        raise ValueError("the file does not match its hash")
    return Checkpoint(int(described["step"]), load_tensors(data), described["values"])


def _seal(index: dict[str, Any]) -> bytes:
    """The one spelling of an index, with its own hash: a changed byte anywhere shows."""
    return canonical({"index": index, "sha256": hashlib.sha256(canonical(index)).hexdigest()})


def _prune(folder: Path, keep: int) -> None:
    """Drop all but the newest; the index goes first, so that no index is left without its tensors."""
    for index in sorted(folder.glob("step-*.json"))[:-keep]:
        index.unlink(missing_ok=True)
    indexed = {index.stem for index in folder.glob("step-*.json")}
    for tensors in folder.glob("step-*.safetensors"):
        if tensors.stem not in indexed:
            tensors.unlink(missing_ok=True)


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """A hash of names, shapes, types and bytes, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        total.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        total.update(tensor.numpy().tobytes())
    return total.hexdigest()
