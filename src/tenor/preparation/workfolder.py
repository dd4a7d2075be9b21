"""The job's working folder: what one stage leaves for the next, each part a folder that is whole or not there."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.store.atomic import replacing

META = "meta.json"


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
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load(folder: Path, name: str) -> npt.NDArray[Any]:
    """An array mapped from its file; empty ones, which cannot be mapped, are read."""
    path = folder / f"{name}.npy"
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        array = np.load(path, allow_pickle=False)
    return array


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
