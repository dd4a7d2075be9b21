"""Weights in a safetensors file as NumPy arrays, read only if they fit the model. Loads no torch.

A file may come from an untrusted source. Names, shapes, types and offsets in its header are compared with those of the
model before an array is allocated, so the file cannot decide how much memory is used. Each array is then read once,
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
from numpy.typing import NDArray

from tenor.errors import RunError
from tenor.store.trusted import open_regular, parse_json

Array = NDArray[Any]

HASH = "weights_sha256"  # a key of the file's metadata
MOST_BYTES = 8 << 30
HEADER_BYTES = 4 << 20
_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype(np.float32), "F64": np.dtype(np.float64)}
_SMALL_TYPES: dict[str, np.dtype[Any]] = {"U8": np.dtype(np.uint8), "F32": np.dtype(np.float32)}
_REMEDY = "copy the run folder again, or train again"


def arrays_sha256(weights: Mapping[str, Array]) -> str:
    """A hash of names, shapes, types and bytes, sorted by name."""
    total = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name]).reshape(weights[name].shape)
        total.update(title(name, array.shape, f"torch.{array.dtype}"))
        total.update(memory_of(array))
    return total.hexdigest()


def title(name: str, shape: tuple[int, ...], dtype: str) -> bytes:
    """The description of an array, which is hashed before its bytes. Types have torch's names: torch.float32."""
    return f"{name} {tuple(shape)} {dtype}\n".encode()


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]], into: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Read the arrays of these names and shapes, all finite and all of one type, float32 or float64.

    Files of older versions have no hash; then it is not compared.

    Args:
        path: The file.
        shapes: The shape of each array.
        into: Contiguous float32 arrays to read into; None allocates new ones. They are undefined after an error.

    Raises:
        RunError: The file is not a regular file, or holds other arrays.
        FileNotFoundError: The file does not exist.
    """
    try:
        with open_regular(path, RunError) as handle, open(handle, "rb", closefd=False) as file:
            header = _read_header(file, path)
            spans, dtype = _spans(header, shapes)
            _check_layout(spans, os.fstat(handle).st_size - file.tell())
            if into is not None and dtype != np.float32:
                raise ValueError("holds F64, not F32")
            weights = dict(into) if into else {name: np.empty(shapes[name], dtype) for name in shapes}
            for name in sorted(spans, key=spans.__getitem__):
                _read(file, weights[name], name)
        _check(weights, header.get("__metadata__", {}))
    except ValueError as error:
        raise RunError(str(error), where=path, remedy=_REMEDY) from None
    return weights


def parse_arrays(data: bytes, path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays in the bytes of a small file, all of bytes or of float32, and the file's metadata.

    The arrays are views of the bytes, so they need no memory of their own, whatever the header says.

    Raises:
        RunError: The header is not JSON that can be trusted.
        ValueError: The file is not a safetensors file of such arrays.
    """
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= min(HEADER_BYTES, len(data) - 8):
        raise ValueError("is not a safetensors file, or is damaged")
    header = parse_json(data[8 : 8 + length], path, RunError)
    spans, arrays = dict[str, _Span](), dict[str, Array]()
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        shape, kind = (entry.get("shape"), entry.get("dtype")) if isinstance(entry, dict) else (None, None)
        if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape) or len(shape) > 4:
            raise ValueError(f"is damaged: {name!r:.60} has no shape")
        if kind not in _SMALL_TYPES:
            raise ValueError(f"{name!r:.60} has the type {kind!r:.40}; only {' and '.join(_SMALL_TYPES)} are allowed")
        spans[name] = _span(entry.get("data_offsets"), math.prod(shape) * _SMALL_TYPES[kind].itemsize)
    _check_layout(spans, len(data) - 8 - length)
    body = memoryview(data)[8 + length :]
    for name, span in spans.items():
        kind, shape = header[name]["dtype"], header[name]["shape"]
        arrays[name] = np.frombuffer(body[span.begin : span.end], _SMALL_TYPES[kind]).reshape(shape)
    metadata = header.get("__metadata__")
    return arrays, metadata if isinstance(metadata, dict) else {}


def pack_arrays(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a file that `parse_arrays` reads."""
    names = {dtype: name for name, dtype in _SMALL_TYPES.items()}
    entries, end = {}, 0
    for name in (ordered := sorted(arrays, key=lambda name: (arrays[name].itemsize == 1, name))):  # floats first
        begin, end = end, end + arrays[name].nbytes
        kind = names[arrays[name].dtype]
        entries[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [begin, end]}
    text = json.dumps({"__metadata__": dict(metadata), **entries}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(arrays[name].tobytes() for name in ordered)


@dataclass(frozen=True, order=True)
class _Span:
    """Offsets of the first byte and of the byte after the last, from the end of the header."""

    begin: int
    end: int


def _read_header(file: BinaryIO, path: Path) -> dict[str, Any]:
    if (size := os.fstat(file.fileno()).st_size) > MOST_BYTES:
        raise ValueError(f"has {size:,} bytes; {MOST_BYTES:,} bytes allowed")
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(HEADER_BYTES, size - 8):
        raise ValueError("is not a safetensors file, or is damaged")
    return parse_json(file.read(length), path, RunError)


def _spans(header: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, _Span], np.dtype[Any]]:
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


def _read(file: BinaryIO, array: Array, name: str) -> None:
    """Read the next array directly into its own memory."""
    target = memory_of(array)
    if file.readinto(target) != len(target):  # type: ignore[attr-defined]
        raise ValueError(f"ends within {name}")


def _check(weights: Mapping[str, Array], metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise ValueError("is damaged: its metadata is not an object")
    if HASH in metadata and metadata[HASH] != arrays_sha256(weights):
        raise ValueError("is damaged: its weights do not match their hash")
    for name, array in weights.items():
        if array.size and not (math.isfinite(array.min()) and math.isfinite(array.max())):
            raise ValueError(f"{name} holds numbers that are not finite")


def memory_of(array: Array) -> memoryview:
    """The memory of a contiguous array."""
    numbers: NDArray[np.uint8] = array.reshape(-1).view(np.uint8)
    return numbers.data
