"""One shard: a plain HDF5 file with the contiguous arrays `tokens`, `offsets` and `labels` (ragged, no padding)."""

from __future__ import annotations

import hashlib
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from tenor.errors import StoreError
from tenor.store.atomic import file_sha256, replacing
from tenor.store.manifest import ShardInfo

_ALIGNMENT = 64  # bytes: every array can be mapped at its place as it is


@dataclass(frozen=True)
class Shard:
    """The mapped arrays of a shard: row r has tokens[offsets[r]:offsets[r + 1]]."""

    tokens: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[np.uint8]


def token_type(vocab_size: int) -> type[np.uint16] | type[np.int32]:
    """The narrowest type the ids fit: half the bytes to write and to read for the usual vocabulary."""
    return np.uint16 if vocab_size <= 1 << 16 else np.int32


def write_shard(folder: Path, file: str, shard: Shard) -> ShardInfo:
    """Write folder/file, whole or not at all."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    image = _image(file, shard)
    with replacing(path) as temporary:
        temporary.write_bytes(image)
    digest = hashlib.sha256(image).hexdigest()
    return ShardInfo(file, len(shard.labels), int(shard.offsets[-1]), len(image), digest)


def _image(name: str, shard: Shard) -> bytes:
    """The file's bytes, made in memory: HDF5 that meets a full disk while it writes brings the process down."""
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
    """Compare a shard with the manifest before anything parses it; StoreError names the file."""
    path = folder / info.file
    try:
        size = path.stat().st_size
        sound = size == info.bytes and file_sha256(path) == info.sha256
    except FileNotFoundError as error:
        raise StoreError("shard is missing", where=path, remedy="prepare the data again") from error
    if not sound:
        told = "has another hash than" if size == info.bytes else f"has {size} bytes, not the {info.bytes} of"
        raise StoreError(f"shard {told} the manifest", where=path, remedy="copy or prepare the data again")


def map_shard(folder: Path, info: ShardInfo) -> Shard:
    """Map a shard's arrays from the page cache; together they hold one descriptor."""
    path = folder / info.file
    try:
        with h5py.File(path, "r") as h5, path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            shard = Shard(*(_map(data, h5[name]) for name in ("tokens", "offsets", "labels")))
    except (OSError, KeyError) as error:
        raise StoreError(f"shard cannot be read: {error}", where=path, remedy="prepare the data again") from error
    if len(shard.labels) != info.rows or len(shard.offsets) != info.rows + 1 or len(shard.tokens) != info.tokens:
        raise StoreError("shard does not hold what the manifest says", where=path, remedy="prepare the data again")
    return shard


def _map(data: mmap.mmap, dataset: Any) -> npt.NDArray[Any]:
    if dataset.size == 0:  # an empty dataset has no place in the file
        return np.empty(dataset.shape, dataset.dtype)
    mapped = np.frombuffer(data, dataset.dtype, dataset.size, dataset.id.get_offset())
    return mapped.reshape(dataset.shape)
