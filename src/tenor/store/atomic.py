"""Files that appear whole or not at all: written under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tenor.errors import TenorError, UsageError, naming

SURROGATES = "backslashreplace"  # bytes of file names that are not UTF-8 are written as JSON's \udcXX


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A new file to write. When the block succeeds, it is flushed to disk and renamed to `path`; otherwise removed."""
    with _creating(path) as (_, file):
        yield file


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Like `writing`, for code that opens its file by name: gives the temporary path of an empty file."""
    with _creating(path) as (temporary, _):
        yield temporary


@contextlib.contextmanager
def _creating(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file under the temporary name `.NAME.<random>.tmp`.

    Nobody can predict the name, and an existing file or link of that name is never opened. So nobody who can write to
    the folder can redirect the write through a link.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with naming(path), os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
        try:
            yield temporary, file
            file.flush()
            os.fsync(file.fileno())
            _check_same(temporary, file)
            temporary.replace(path)
            sync(path.parent)  # so that the new name survives a power cut too
        finally:
            temporary.unlink(missing_ok=True)


def _check_same(temporary: Path, file: BinaryIO) -> None:
    """Fail if somebody has replaced our temporary file by another file."""
    if not os.path.samestat(temporary.lstat(), os.fstat(file.fileno())):
        raise TenorError(
            "was replaced by another file while it was written",
            where=temporary,
            remedy="use a folder that only you can write to",
        )


def check_target(path: Path) -> None:
    """Create the folder of an output file; UsageError, before any work is done, if `path` itself is a folder."""
    if path.is_dir():
        raise UsageError("is a folder", where=path, remedy="give --out the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file in its canonical form, whole or not at all."""
    write_bytes(path, canonical(value))


def canonical(value: Any) -> bytes:
    """The canonical JSON of a value: keys are sorted, so that equal values give equal bytes."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return text.encode("utf-8", SURROGATES)


def sync(path: Path) -> None:
    """Flush a file, or the list of names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all, even if the power fails."""
    with writing(path) as file:
        file.write(data)
