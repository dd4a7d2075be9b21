"""One shard: a plain HDF5 file with the contiguous arrays `tokens`, `offsets` and `labels`, without padding."""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from tenor.errors import StoreError
from tenor.store.atomic import write_bytes
from tenor.store.manifest import MAX_INT32, NO_LABEL, Manifest, ShardInfo
from tenor.store.trusted import open_regular, sha256_of

_ALIGNMENT = 64  # bytes; so every array can be memory-mapped where it is in the file
_CHUNK = 1 << 20  # tokens checked at once


@dataclass(frozen=True)
class Shard:
    """The memory-mapped arrays of a shard. Row r has the tokens tokens[offsets[r]:offsets[r + 1]]."""

    tokens: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[np.uint8]


def token_type(vocab_size: int) -> type[np.uint16] | type[np.int32]:
    """The narrowest integer type that holds every token id. For the usual vocabulary this halves the bytes."""
    return np.uint16 if vocab_size <= 1 << 16 else np.int32


def write_shard(folder: Path, file: str, shard: Shard) -> ShardInfo:
    """Write the file folder/file, whole or not at all."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    image = _image(file, shard)
    write_bytes(path, image)
    digest = hashlib.sha256(image).hexdigest()
    return ShardInfo(file, len(shard.labels), int(shard.offsets[-1]), len(image), digest)


def _image(name: str, shard: Shard) -> bytes:
    """The bytes of the file. They are made in memory, because HDF5 crashes the process if the disk is full."""
    arrays = {field: getattr(shard, field) for field in ("tokens", "offsets", "labels")}
    room = sum(array.nbytes for array in arrays.values()) + (1 << 16)
    core = {"driver": "core", "backing_store": False, "block_size": room}
    with h5py.File(name, "w", libver="v110", alignment_threshold=1, alignment_interval=_ALIGNMENT, **core) as h5:
        for field, array in arrays.items():
            h5.create_dataset(field, data=array, track_times=False)
        h5.flush()
        image: bytes = h5.id.get_file_image()
        return image


def check_shard(folder: Path, info: ShardInfo) -> None:
    """Compare the size and hash of a shard with the manifest, before HDF5 parses it; StoreError names the file."""
    path = folder / info.file
    try:
        with open_regular(path, StoreError) as handle:
            size = os.fstat(handle).st_size
            is_intact = size == info.bytes and sha256_of(handle) == info.sha256
    except FileNotFoundError as error:
        raise StoreError("shard is missing", where=path, remedy="prepare the data again") from error
    if not is_intact:
        other_size = f"has {size} bytes, but the manifest says {info.bytes}"
        problem = "does not match its hash in the manifest" if size == info.bytes else other_size
        raise StoreError(f"shard {problem}", where=path, remedy="copy or prepare the data again")


def map_shard(folder: Path, info: ShardInfo, manifest: Manifest, *, is_labelled: bool = True) -> Shard:
    """Memory-map the arrays of a shard; together they use one file descriptor.

    Checks everything that compiled code relies on: the arrays are inside the file, and the rows are inside the tokens.
    The tokens themselves are checked by `check_tokens`, which must read them all.
    """
    path = folder / info.file
    try:
        with open_regular(path, StoreError) as handle:
            _require(os.fstat(handle).st_size == info.bytes > 0, "its size differs from the manifest")
            data = mmap.mmap(handle, info.bytes, access=mmap.ACCESS_READ)
        with h5py.File(path, "r") as h5:
            tokens = _map(data, h5, "tokens", token_type(manifest.vocab_size), info.tokens)
            offsets = _map(data, h5, "offsets", np.int64, info.rows + 1)
            labels = _map(data, h5, "labels", np.uint8, info.rows)
        _check_rows(offsets, info.tokens, min(manifest.max_length, MAX_INT32))
        if is_labelled:
            _require(not len(labels) or int(labels.max()) < len(manifest.classes), "a label is not one of the classes")
        else:
            _require(bool((labels == NO_LABEL).all()), "an unlabelled row has a label")
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise StoreError(f"shard cannot be used: {error}", where=path, remedy="prepare the data again") from error
    return Shard(tokens, offsets, labels)


def _map(data: mmap.mmap, h5: h5py.File, name: str, kind: type, length: int) -> npt.NDArray[Any]:
    """Map one array; ValueError unless it is contiguous, inside this file, and of the given type and length."""
    _require(isinstance(h5.get(name, getlink=True), h5py.HardLink), f"{name!r} is missing or a link")
    dataset = h5[name]
    _require(isinstance(dataset, h5py.Dataset), f"{name!r} is not an array")
    dtype = np.dtype(kind).newbyteorder("<")
    _require(dataset.dtype == dtype and dataset.shape == (length,), f"{name!r} has another type or length")
    made = dataset.id.get_create_plist()
    _require(made.get_layout() == h5py.h5d.CONTIGUOUS and not made.get_external_count(), f"{name!r} is not contiguous")
    if not length:  # an empty array has no position in the file
        return np.empty(0, dtype)
    at = dataset.id.get_offset()
    inside = at is not None and at % dtype.itemsize == 0 and at <= len(data) - length * dtype.itemsize
    _require(inside, f"{name!r} is outside the file")
    return np.frombuffer(data, dtype, length, at)


def _check_rows(offsets: npt.NDArray[np.int64], tokens: int, longest: int) -> None:
    """Check that the rows follow each other and cover all tokens, and that each has from 1 to `longest` tokens."""
    _require(int(offsets[0]) == 0 and int(offsets[-1]) == tokens, "the rows do not cover the tokens exactly")
    rising = offsets[1:] > offsets[:-1]
    _require(bool(rising.all()), "a row has no tokens or ends before it starts")
    _require(len(rising) == 0 or int(np.diff(offsets).max()) <= longest, "a row is longer than max_length")


def check_tokens(
    folder: Path, info: ShardInfo, manifest: Manifest, *, is_labelled: bool = True
) -> npt.NDArray[np.int64]:
    """Read a whole shard and check that every token is in the vocabulary.

    Returns:
        The number of rows per class; empty if the shard is not labelled.
    """
    shard = map_shard(folder, info, manifest, is_labelled=is_labelled)
    for first in range(0, len(shard.tokens), _CHUNK):
        chunk = shard.tokens[first : first + _CHUNK]
        if int(chunk.max()) >= manifest.vocab_size or int(chunk.min()) < 0:
            raise StoreError(
                "shard cannot be used: a token is not in the vocabulary",
                where=folder / info.file,
                remedy="prepare the data again",
            )
    return np.bincount(shard.labels, minlength=len(manifest.classes)) if is_labelled else np.empty(0, np.int64)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
