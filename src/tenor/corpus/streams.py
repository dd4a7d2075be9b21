"""Opening raw files: unpacking on the way, with damage turned into errors that name the file."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from tenor.errors import CorpusError

SNIFF = 1 << 16
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, OSError)


@contextlib.contextmanager
def open_raw(path: str) -> Iterator[BinaryIO]:
    """The bytes as they lie there."""
    try:
        with Path(path).open("rb", buffering=0) as raw:
            yield cast(BinaryIO, io.BufferedReader(raw, 1 << 20))
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise CorpusError(f"cannot be read: {error.strerror}", where=path, remedy="check the name") from error


@contextlib.contextmanager
def open_unpacked(path: str, compression: str) -> Iterator[BinaryIO]:
    """The unpacked bytes. Damage found while reading raises CorpusError."""
    with open_raw(path) as raw:
        if not compression:
            yield raw
            return
        with _unpack(raw, compression) as unpacked:
            yield cast(BinaryIO, Guarded(unpacked, path, compression))


def _unpack(raw: BinaryIO, compression: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if compression == "gz":
        return cast(contextlib.AbstractContextManager[BinaryIO], gzip.GzipFile(fileobj=raw))
    return cast(contextlib.AbstractContextManager[BinaryIO], bz2.BZ2File(raw))


class Guarded:
    """A packed stream that says which file is damaged."""

    def __init__(self, stream: BinaryIO, path: str, compression: str) -> None:
        self._stream = stream
        self._path = path
        self._compression = compression

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except _DAMAGE as error:
            raise CorpusError(
                f"damaged {self._compression} data: {error}", where=self._path, remedy="fetch the file again"
            ) from error
