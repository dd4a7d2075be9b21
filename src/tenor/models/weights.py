"""Weights in a safetensors file: written with their hash, and read only if they fit the model.

A file may come from an untrusted source. Names, shapes, types and offsets in its header are compared with those of the
model before a tensor is allocated, so the file cannot decide how much memory is used. Each tensor is then read once,
directly into its memory.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from tenor.errors import RunError
from tenor.store.atomic import writing
from tenor.store.trusted import open_regular, parse_json

HASH = "weights_sha256"  # a key of the file's metadata
MOST_BYTES = 8 << 30
_HEADER_BYTES = 4 << 20
_PIECE_BYTES = 1 << 22
_TYPES = {"F32": torch.float32, "F64": torch.float64}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_REMEDY = "copy the run folder again, or train again"


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """A hash of names, shapes, types and bytes, sorted by name."""
    total = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        total.update(_title(name, tensor))
        total.update(_bytes(tensor))
    return total.hexdigest()


def _title(name: str, tensor: Tensor) -> bytes:
    return f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode()


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
            total.update(_title(name, weights[name]))
            memory = _bytes(weights[name].detach())
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
    """Read the tensors of these names and shapes, all finite and all of one type, float32 or float64.

    Files of older versions have no hash; then it is not compared.

    Args:
        path: The file.
        shapes: The shape of each tensor.
        into: Contiguous float32 tensors to read into; None allocates new ones. They are undefined after an error.

    Raises:
        RunError: The file is not a regular file, or holds other tensors.
        FileNotFoundError: The file does not exist.
    """
    try:
        with open_regular(path, RunError) as handle, open(handle, "rb", closefd=False) as file:
            header = _read_header(file, path)
            spans, dtype = _spans(header, shapes)
            _check_layout(spans, os.fstat(handle).st_size - file.tell())
            if into is not None and dtype is not torch.float32:
                raise ValueError("holds F64, not F32")
            weights = (
                dict(into) if into else {name: torch.empty(shapes[name], dtype=dtype, device="cpu") for name in shapes}
            )
            for name in sorted(spans, key=spans.__getitem__):
                _read(file, weights[name], name)
        _check(weights, header.get("__metadata__", {}))
    except ValueError as error:
        raise RunError(str(error), where=path, remedy=_REMEDY) from None
    return weights


@dataclass(frozen=True, order=True)
class _Span:
    """Offsets of the first byte and of the byte after the last, from the end of the header."""

    begin: int
    end: int


def _read_header(file: BinaryIO, path: Path) -> dict[str, Any]:
    if (size := os.fstat(file.fileno()).st_size) > MOST_BYTES:
        raise ValueError(f"has {size:,} bytes; {MOST_BYTES:,} bytes allowed")
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(_HEADER_BYTES, size - 8):
        raise ValueError("is not a safetensors file, or is damaged")
    return parse_json(file.read(length), path, RunError)


def _spans(header: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, _Span], torch.dtype]:
    """The offsets of each tensor, and the type of all tensors."""
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if missing := [name for name in shapes if name not in entries]:
        raise ValueError(f"has no tensor {missing[0]!r}, which the model of config.json needs")
    if unknown := [name for name in entries if name not in shapes]:
        raise ValueError(f"has the unknown tensor {reprlib.repr(unknown[0])}")
    spans, kind = {}, ""
    for name, shape in shapes.items():
        entry = entries[name] if isinstance(entries[name], dict) else {}
        if entry.get("shape") != list(shape):
            found = reprlib.repr(entry.get("shape"))
            raise ValueError(f"{name} has the shape {found}, the model of config.json needs {list(shape)}")
        kind = kind or str(entry.get("dtype"))
        if entry.get("dtype") != kind or kind not in _TYPES:
            raise ValueError(f"{name} has the type {reprlib.repr(entry.get('dtype'))}; all must be F32, or all F64")
        spans[name] = _span(entry.get("data_offsets"), math.prod(shape) * _TYPES[kind].itemsize)
    return spans, _TYPES[kind]


def _span(offsets: Any, size: int) -> _Span:
    if isinstance(offsets, list) and [type(offset) for offset in offsets] == [int, int]:
        span = _Span(*offsets)
        if span.end - span.begin == size:
            return span
    raise ValueError("is damaged: its offsets do not fit its shapes")


def _check_layout(spans: Mapping[str, _Span], size: int) -> None:
    """The tensors must follow each other without gaps and fill the file."""
    ordered = [_Span(0, 0), *sorted(spans.values()), _Span(size, size)]
    if any(before.end != after.begin for before, after in itertools.pairwise(ordered)):
        raise ValueError("is damaged: its tensors do not fill it")


def _read(file: BinaryIO, tensor: Tensor, name: str) -> None:
    """Read the next tensor directly into its own memory."""
    target = _bytes(tensor)
    if file.readinto(target) != len(target):  # type: ignore[attr-defined]
        raise ValueError(f"ends within {name}")


def _check(weights: Mapping[str, Tensor], metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise ValueError("is damaged: its metadata is not an object")
    if HASH in metadata and metadata[HASH] != weights_sha256(weights):
        raise ValueError("is damaged: its weights do not match their hash")
    for name, tensor in weights.items():
        if not all(math.isfinite(bound.item()) for bound in torch.aminmax(tensor)):
            raise ValueError(f"{name} holds numbers that are not finite")


def _bytes(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor."""
    numbers: NDArray[np.uint8] = tensor.reshape(-1).view(torch.uint8).numpy()
    return numbers.data
