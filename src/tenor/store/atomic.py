"""Files that are whole or not there: written under a temporary name, flushed to the disk, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenor.errors import UsageError, naming

SURROGATES = "backslashreplace"  # file names need not be UTF-8: what stands for their odd bytes becomes JSON's \udcXX


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its name when the block ends well, and goes away when it does not."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path):
            yield temporary
            sync(temporary)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a file that cannot be written where it is wanted; make its folder."""
    if path.is_dir():
        raise UsageError("is a folder", where=path, remedy="give --out the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)


def write_json(path: Path, value: Any) -> None:
    """The one spelling of a JSON file: sorted keys, so that equal values are equal bytes."""
    with replacing(path) as temporary:
        temporary.write_bytes(canonical(value))


def canonical(value: Any) -> bytes:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return text.encode("utf-8", SURROGATES)


def sync(path: Path) -> None:
    """Force a file or a folder's list of names to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """The file with these bytes, through a power cut too."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
    sync(path.parent)
