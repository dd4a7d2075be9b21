"""Weights as torch's tensors in a safetensors file: written with their hash, and read only if they fit the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from tenor.models.arrays import HASH, arrays_sha256, memory_of, read_arrays, title
from tenor.store.atomic import writing

_PIECE_BYTES = 1 << 22
_NAMES = {torch.float32: "F32", torch.float64: "F64"}


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """A hash of names, shapes, types and bytes, sorted by name."""
    return arrays_sha256({name: tensor.detach().cpu().numpy() for name, tensor in weights.items()})


def pack_weights(weights: Mapping[str, Tensor]) -> bytes:
    """The bytes of a safetensors file whose metadata holds the hash of the weights."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    data: bytes = save(whole, {HASH: weights_sha256(whole)})
    return data


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the file that `pack_weights` describes, piece by piece, so that no second copy of the weights is in memory.

    Other processes may change the weights meanwhile: the hash is that of the bytes which are written.
    """
    entries, end = {}, 0
    for name in sorted(weights):
        begin, end = end, end + weights[name].nbytes
        kind = _NAMES[weights[name].dtype]
        entries[name] = {"dtype": kind, "shape": list(weights[name].shape), "data_offsets": [begin, end]}
    total = hashlib.sha256()
    with writing(path) as file:
        file.write(_header(entries, "0" * 2 * total.digest_size))  # as long as the real one
        for name in sorted(weights):
            total.update(title(name, weights[name].shape, str(weights[name].dtype)))
            memory = memory_of(weights[name].detach().numpy())
            for place in range(0, len(memory), _PIECE_BYTES):
                piece = bytes(memory[place : place + _PIECE_BYTES])
                total.update(piece)
                file.write(piece)
        file.seek(0)
        file.write(_header(entries, total.hexdigest()))


def _header(entries: Mapping[str, Any], sha256: str) -> bytes:
    text = json.dumps({"__metadata__": {HASH: sha256}, **entries}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # numbers begin at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text


def are_finite(tensors: Mapping[str, Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())


def copy_saved(target: Tensor, tensors: Mapping[str, Tensor], name: str) -> None:
    """Copy a saved tensor into `target`; ValueError if it is missing, not finite, or of another shape or type."""
    saved = tensors.get(name)
    if saved is None:
        raise ValueError(f"has no tensor {name!r}")
    if saved.shape != target.shape:
        raise ValueError(f"{name} has the shape {list(saved.shape)}, not {list(target.shape)}")
    if saved.dtype != target.dtype:
        raise ValueError(f"{name} has the type {saved.dtype}, not {target.dtype}")
    if not torch.isfinite(saved).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    target.copy_(saved)


def read_weights(
    path: Path, shapes: Mapping[str, tuple[int, ...]], into: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Read the tensors of these names and shapes; see `read_arrays`.

    Args:
        path: The file.
        shapes: The shape of each tensor.
        into: Contiguous float32 tensors to read into; None allocates new ones. They are undefined after an error.
    """
    targets = None if into is None else {name: tensor.detach().numpy() for name, tensor in into.items()}
    found = read_arrays(path, shapes, targets)
    return dict(into) if into is not None else {name: torch.from_numpy(array) for name, array in found.items()}
