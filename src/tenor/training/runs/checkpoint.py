"""Checkpoints: safetensors files, and a JSON index with their hashes that is written last.

A checkpoint without an index, or with files that do not match their hashes, is ignored; the newest valid one is loaded.
If several ranks share one model, each saves its part at the same time, and loading joins the parts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from tenor.errors import RunError
from tenor.groups import Alone, Group
from tenor.models.weights import are_finite
from tenor.store.atomic import canonical, write_bytes
from tenor.store.trusted import read_bytes

HASH_BYTES = 32
INDEX_BYTES = 16 << 20
MAX_BYTES = 8 << 30
SMALL_BYTES = 64 << 20  # that a checkpoint of any model may have


@dataclass(frozen=True)
class Checkpoint:
    """The weights and optimizer state as tensors, and all other state of a run as JSON values."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int, row: Group | None = None) -> None:
    """Save a checkpoint. Every rank of the row calls this function and saves its part; the first writes the index.

    Args:
        folder: The folder of the checkpoints.
        checkpoint: The part of this rank.
        keep: How many checkpoints to keep.
        row: The ranks that share one model; None for this rank alone.

    Raises:
        ValueError: A part has weights that are not finite. All ranks raise, and no checkpoint is saved.
        OSError: A part cannot be written. All ranks raise, and no checkpoint is saved.
    """
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


def largest_part(weight_bytes: int) -> int:
    """The most bytes that a file of a checkpoint may have if the weights have so many.

    A checkpoint has the weights, those to keep, and what optimizer and strategy remember: some times the weights.
    """
    return min(MAX_BYTES, 32 * weight_bytes + SMALL_BYTES)


def newest_checkpoint(folder: Path, limit: int = MAX_BYTES) -> tuple[Checkpoint | None, list[str]]:
    """Load the newest valid checkpoint; a part may have at most `limit` bytes.

    Returns:
        The checkpoint or None, and the reason for each newer checkpoint that is not valid.
    """
    refused: list[str] = []
    if folder.is_symlink():
        remedy = "use a run folder from a source you trust"
        raise RunError("is a symbolic link, not a folder", where=folder, remedy=remedy)
    for index in sorted(folder.glob("step-*.json"), reverse=True):
        try:
            return _load(index, limit), refused
        except (OSError, ValueError, RunError, SafetensorError, RecursionError) as error:
            refused.append(f"{index.name}: {error}")
    return None, refused


def resume_point(folder: Path) -> str:
    """A sentence for people: the step that --resume would continue from."""
    steps = (index.stem.removeprefix("step-") for index in folder.glob("step-*.json"))
    newest = max((step for step in steps if step.isdecimal()), default=None)
    if newest is None:
        return "there is no earlier one, so --resume starts from the beginning"
    return f"--resume continues from step {int(newest)}"


def _load(path: Path, limit: int) -> Checkpoint:
    index = _read_index(path)
    tensors: dict[str, Tensor] = {}
    for rank, expected in enumerate(index["parts"]):
        data = read_bytes(path.with_name(_part_name(path.stem, rank)), limit, RunError)
        if hashlib.sha256(data).hexdigest() != expected:
            raise ValueError("the file does not match its hash")
        tensors |= load_tensors(data)
    return Checkpoint(index["step"], tensors, index["values"])


def _read_index(path: Path) -> dict[str, Any]:
    sealed = read_bytes(path, INDEX_BYTES, RunError)
    outer = json.loads(sealed)
    index = outer.get("index") if isinstance(outer, dict) else None
    if not isinstance(index, dict) or _seal(index) != sealed:
        raise ValueError("the index does not match its hash")
    step, parts, values = (index.get(name) for name in ("step", "parts", "values"))
    if type(step) is not int or _stem(step) != path.stem:
        raise ValueError("the index names another step than its file name")
    if not isinstance(values, dict) or not isinstance(parts, list) or not parts:
        raise ValueError("the index has no list of parts or no values")
    return index


def _seal(index: dict[str, Any]) -> bytes:
    """The index with its own hash, in canonical JSON, so that any changed byte is noticed."""
    return canonical({"index": index, "sha256": hashlib.sha256(canonical(index)).hexdigest()})


def _prune(folder: Path, keep: int) -> None:
    """Remove all but the newest checkpoints. The index goes first, so that no index remains without its tensors."""
    for index in sorted(folder.glob("step-*.json"))[:-keep]:
        index.unlink(missing_ok=True)
    indexed = {index.stem for index in folder.glob("step-*.json")}
    for left in folder.glob(".step-*.tmp"):  # left by a killed process; all parts of this checkpoint are complete
        left.unlink(missing_ok=True)
    for tensors in folder.glob("step-*.safetensors"):
        if tensors.name.partition(".")[0] not in indexed:
            tensors.unlink(missing_ok=True)
