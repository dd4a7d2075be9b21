"""The job's working folder: what one stage leaves for the next, each part a folder that is whole or not there."""

from __future__ import annotations

import contextlib
import io
import json
import math
import mmap
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.store.atomic import replacing

META = "meta.json"
ARRAYS = "arrays"
_ALIGNMENT = 64  # bytes


def part_path(work: str, stage: str, number: int) -> Path:
    return Path(work) / stage / f"{number:06d}"


def finished(path: Path) -> dict[str, Any] | None:
    """What a part says of itself, or None while it is not done."""
    try:
        values: dict[str, Any] = json.loads((path / META).read_bytes())
    except FileNotFoundError:
        return None
    return values


@contextlib.contextmanager
def making(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes `path`. Two workers may make the same part: the first to finish wins."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        with contextlib.suppress(FileExistsError):
            _rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _rename(temporary: Path, path: Path) -> None:
    try:
        temporary.rename(path)
    except OSError:  # ENOTEMPTY or EEXIST, as the system likes: somebody was faster
        if finished(path) is None:
            raise


def save(folder: Path, **arrays: npt.NDArray[Any]) -> None:
    """All arrays of a part in one file: a JSON line that says where each lies, then their bytes."""
    at, places = 0, {}
    for name, array in arrays.items():
        places[name] = (array.dtype.str, array.shape, at)
        at += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    with (folder / ARRAYS).open("wb", buffering=0) as file:
        head = json.dumps(places).encode()
        file.write(head.ljust(-(-(len(head) + 1) // _ALIGNMENT) * _ALIGNMENT - 1) + b"\n")
        for array in arrays.values():
            _write(file, memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data))
            _write(file, bytes(-array.nbytes % _ALIGNMENT))


def _write(file: io.FileIO, data: memoryview | bytes) -> None:
    """All of it: one call writes no more than 2 GB, or less when a disk is nearly full."""
    while len(data):
        data = data[file.write(data) :]


def load(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The part's arrays by name, mapped from their file, which stays open as long as any of them is held."""
    with (folder / ARRAYS).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    head = data.readline()
    return {
        name: np.frombuffer(data, kind, math.prod(shape), len(head) + at).reshape(shape)
        if math.prod(shape)
        else np.empty(shape, kind)
        for name, (kind, shape, at) in json.loads(head).items()
    }


def save_meta(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
    (folder / META).write_text(json.dumps(values), "utf-8")
    return values


def link(source: Path, target: Path) -> None:
    """The same file under a second name; a copy, whole or not there, where the file system has no links."""
    try:
        target.hardlink_to(source)
    except OSError:
        with replacing(target) as temporary:
            shutil.copyfile(source, temporary)
