"""The output of a task: a folder with arrays and a result for later stages, which is whole or does not exist."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import mmap
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tenor.engines.records import from_json, to_json
from tenor.errors import StoreError
from tenor.preparation.job.work_folder import ARRAYS, RESULT
from tenor.store.atomic import writing
from tenor.store.trusted import open_regular, parse_json, read_json, sha256_of

_ALIGNMENT = 64  # bytes
_HEAD_LIMIT = 1 << 16
_RESULT_LIMIT = 64 << 20  # a piece may have 60,000 different ratings

T = TypeVar("T")


def finished(path: Path, kind: type[T]) -> T | None:
    """The result of a task whose output is whole; None if the task has to run.

    Outputs are not flushed to the disk, so a power cut may leave them empty, truncated or full of zeros. Every file of
    an earlier attempt is therefore compared with its hash before it is trusted. A damaged output is removed.
    """
    if not _is_usable(path):
        return None
    try:
        return read_result(path, kind)
    except ValueError:  # JSON, but not of this result
        _remove(path)
        return None


def _is_usable(path: Path) -> bool:
    """Whether the output exists and is whole; a damaged one is removed."""
    try:
        if is_whole(path):
            return True
    except FileNotFoundError:
        if not path.is_dir():
            return False
    except StoreError:
        pass  # damaged
    _remove(path)
    return False


def read_result(path: Path, kind: type[T]) -> T:
    """The result in an output that is known to be whole."""
    return from_json(kind, read_json(path / RESULT, _RESULT_LIMIT, StoreError)["values"])


def is_whole(path: Path) -> bool:
    """Whether every file of the output is as it was written."""
    result = read_json(path / RESULT, _RESULT_LIMIT, StoreError)
    if set(result) != {"values", "files"} or not isinstance(result["values"], dict):
        return False
    return bool(result["files"] == _digests(path))


def _digests(folder: Path) -> dict[str, str]:
    """The hash of each file of an output, except the file that holds the hashes."""
    digests = {}
    for path in sorted(folder.iterdir()):
        if path.name != RESULT:
            with open_regular(path, StoreError) as handle:
                digests[path.name] = sha256_of(handle)
    return digests


def _remove(path: Path) -> None:
    """Move a damaged output away in one step, because another worker may be about to make it again; then delete it."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):  # another worker was faster
        path.rename(aside)
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside)
    else:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def making(path: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `path` at the end.

    Two workers may make the same output. The output of the worker that finishes first is kept.
    """
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
    except OSError:  # ENOTEMPTY or EEXIST, depending on the system: another worker was faster
        if not _is_usable(path):
            temporary.rename(path)


def save_arrays(folder: Path, arrays: Any) -> None:
    """Write all arrays of an output, the fields of a dataclass, to one file.

    The file begins with a JSON line that gives type, shape and offset of each array; the bytes of the arrays follow.
    """
    named: dict[str, npt.NDArray[Any]] = {
        field.name: getattr(arrays, field.name) for field in dataclasses.fields(arrays)
    }
    offset, places = 0, {}
    for name, array in named.items():
        places[name] = (array.dtype.str, array.shape, offset)
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    with (folder / ARRAYS).open("wb", buffering=0) as file:
        head = json.dumps(places).encode()
        file.write(head.ljust(-(-(len(head) + 1) // _ALIGNMENT) * _ALIGNMENT - 1) + b"\n")
        for array in named.values():
            _write(file, memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data))
            _write(file, bytes(-array.nbytes % _ALIGNMENT))


def _write(file: io.FileIO, data: memoryview | bytes) -> None:
    """Write all bytes: one system call writes at most 2 GB, and less when the disk is nearly full."""
    while len(data):
        data = data[file.write(data) :]


def load_arrays(folder: Path, kind: type[T]) -> T:
    """The arrays of an output as a dataclass of the given class.

    The arrays are mapped from their file, which stays open as long as any of them is referenced.
    """
    path = folder / ARRAYS
    with open_regular(path, StoreError) as handle:
        data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    head = data[: data.find(b"\n", 0, _HEAD_LIMIT) + 1]
    return kind(**{name: _array(data, len(head), *place) for name, place in parse_json(head, path, StoreError).items()})


def _array(data: mmap.mmap, first: int, kind: str, shape: list[int], offset: int) -> npt.NDArray[Any]:
    if np.dtype(kind).kind not in "iu":
        raise StoreError(f"holds an array of {kind}, not of integers", where=ARRAYS, remedy="remove the work folder")
    if not math.prod(shape):
        return np.empty(shape, kind)
    return np.frombuffer(data, kind, math.prod(shape), first + offset).reshape(shape)  # raises if out of the file


def save_result(folder: Path, result: T) -> T:
    """Write the task's result and the hashes of all other files of the output; call it last."""
    (folder / RESULT).write_text(json.dumps({"values": to_json(result), "files": _digests(folder)}), "utf-8")
    return result


def link(source: Path, target: Path) -> None:
    """Give a file a second name; copy it where the file system has no hard links."""
    try:
        target.hardlink_to(source)
    except OSError:
        with source.open("rb") as file, writing(target) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
