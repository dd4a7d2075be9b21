"""Opening raw files, local or by URL: unpacking on the way, with damage turned into errors that name the file."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from tenor.corpus.remote import explained, filesystem, is_url, open_remote
from tenor.errors import CorpusError, naming

SNIFF = 1 << 16
# Text shrinks by 3 to 10; what shrinks by hundreds over this much output is an attack or an accident.
MAX_RATIO, RATIO_FROM = 250, 64 << 20
MAX_UNPACKED = 1 << 42
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, OSError)


def stamp(path: str) -> tuple[int, int | str]:
    """(size, when it was changed): tells whether an input is still the same."""
    if not is_url(path):
        found = Path(path).stat()
        return found.st_size, found.st_mtime_ns
    system, name = filesystem(path)
    with explained(path):
        return int(system.size(name) or 0), str(system.ukey(name))


@contextlib.contextmanager
def open_raw(path: str, folder: str = "") -> Iterator[BinaryIO]:
    """The bytes as they lie there; `folder` is where a relative path starts, if not here."""
    if is_url(path):
        with open_remote(path) as remote:
            yield cast(BinaryIO, remote)
        return
    try:
        with naming(path), Path(folder, path).open("rb") as raw:
            yield cast(BinaryIO, raw)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        why = error.strerror or type(error).__name__
        raise CorpusError(f"cannot be read: {why}", where=path, remedy="check the name") from error


@contextlib.contextmanager
def open_unpacked(path: str, compression: str, folder: str = "") -> Iterator[BinaryIO]:
    """The unpacked bytes. Damage found while reading raises CorpusError."""
    with open_raw(path, folder) as raw:
        if not compression:
            yield raw
            return
        counted = _Counted(raw)
        with contextlib.closing(_unpack(counted, compression)) as unpacked:
            yield cast(BinaryIO, Guarded(unpacked, counted, path, compression))


def _unpack(raw: Any, compression: str) -> Any:
    if compression == "gz":
        return gzip.GzipFile(fileobj=raw)
    if compression == "bz2":
        return io.BufferedReader(_Bz2Streams(raw), SNIFF)
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")


class _Bz2Streams(io.RawIOBase):
    """bz2 streams one after another. BZ2File leaves out whatever follows a stream and does not look like another."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self.raw, self.stream = raw, bz2.BZ2Decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, place: Any) -> int:
        while True:
            if self.stream.eof:
                packed = self.stream.unused_data or self.raw.read(SNIFF)
                if not packed:
                    return 0
                self.stream = bz2.BZ2Decompressor()
            else:
                packed = self.raw.read(SNIFF) if self.stream.needs_input else b""
                if self.stream.needs_input and not packed:
                    raise EOFError("it ends within a stream")
            if data := self.stream.decompress(packed or b"", len(place)):
                place[: len(data)] = data
                return len(data)


class _Counted(io.RawIOBase):
    """Counts the packed bytes that were read."""

    def __init__(self, raw: BinaryIO) -> None:
        self.raw, self.count = raw, 0

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.count += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class Guarded:
    """A packed stream that says which file is damaged, and stops one that unpacks without end."""

    def __init__(self, stream: Any, packed: _Counted, path: str, compression: str) -> None:
        self._stream, self._packed, self._path, self._compression = stream, packed, path, compression
        self._count = 0

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except _DAMAGE as error:
            raise CorpusError(
                f"damaged {self._compression} data: {error}", where=self._path, remedy="fetch the file again"
            ) from error
        self._count += len(data)
        if self._count > MAX_UNPACKED or self._count > max(RATIO_FROM, MAX_RATIO * self._packed.count):
            raise CorpusError(
                f"unpacks to more than {MAX_RATIO} times its size",
                where=self._path,
                remedy="if it is no mistake, unpack it first",
            )
        return data

    def readinto(self, place: memoryview) -> int:
        data = self.read(len(place))
        place[: len(data)] = data
        return len(data)
