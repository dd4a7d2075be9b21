"""Open input files, local or by URL, and decompress them while reading. Damage becomes an error that names the file."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, cast

from tenor.corpus.files.archives import open_member
from tenor.corpus.files.encodings import transcoded
from tenor.corpus.files.limits import largest_unpacked, too_large
from tenor.corpus.files.remote import explained, filesystem, is_url, open_remote
from tenor.corpus.files.source import UTF8, Kind, Source
from tenor.errors import CorpusError, naming

SNIFF = 1 << 16  # bytes at the start of a file that recognition looks at
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, OSError)


def stamp(path: str) -> tuple[int, int | str]:
    """(size, time of the last change): differs once the file has changed."""
    if not is_url(path):
        found = Path(path).stat()
        return found.st_size, found.st_mtime_ns
    system, name = filesystem(path)
    with explained(path):
        return int(system.size(name) or 0), str(system.ukey(name))


@contextlib.contextmanager
def open_raw(path: str, folder: str = "") -> Iterator[BinaryIO]:
    """The bytes of the file as stored; a relative path starts at `folder`, by default the current folder."""
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
def open_unpacked(path: str, kind: Kind, folder: str = "") -> Iterator[BinaryIO]:
    """The decompressed content as UTF-8. Damage found while reading raises CorpusError."""
    with open_raw(path, folder) as raw, _opened(raw, path, kind) as unpacked:
        yield unpacked if kind.encoding == UTF8 else transcoded(unpacked, kind.encoding, path)


def open_content(source: Source) -> AbstractContextManager[BinaryIO]:
    """The decompressed content of a source as UTF-8, from the first byte."""
    return open_unpacked(source.path, source.kind, source.folder)


def first_bytes(stream: BinaryIO, where: str) -> bytes:
    """The first bytes of a file's content; CorpusError if they are nothing but white space."""
    start = stream.read(SNIFF)
    if not start.strip():
        raise is_empty(where)
    return start


def is_empty(where: str) -> CorpusError:
    """The error for an input file without content."""
    return CorpusError("is empty", where=where, remedy="give a file with reviews in it")


@contextlib.contextmanager
def _opened(raw: BinaryIO, path: str, kind: Kind) -> Iterator[BinaryIO]:
    if not kind.compression:
        yield raw
    elif kind.compression == "zip":
        with open_member(raw, path, kind.member) as (stream, size):
            yield cast(BinaryIO, Guarded(stream, lambda: size, path, kind.compression))
    else:
        counted = _Counted(raw)
        with contextlib.closing(_unpack(counted, kind.compression)) as unpacked:
            yield cast(BinaryIO, Guarded(unpacked, lambda: counted.count, path, kind.compression))


def _unpack(raw: Any, compression: str) -> Any:
    if compression == "gz":
        return gzip.GzipFile(fileobj=raw)
    if compression == "bz2":
        return io.BufferedReader(_Bz2Streams(raw), SNIFF)
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")


class _Bz2Streams(io.RawIOBase):
    """bz2 streams one after another. BZ2File would ignore any other data that follows a stream."""

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
                    raise EOFError("the file ends within a stream")
            if data := self.stream.decompress(packed or b"", len(place)):
                place[: len(data)] = data
                return len(data)


class _Counted(io.RawIOBase):
    """Counts the compressed bytes that are read."""

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
    """A decompressed stream whose errors name the file, and that stops when it unpacks to more than the limit."""

    def __init__(self, stream: Any, packed: Callable[[], int], path: str, compression: str) -> None:
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
        if self._count > largest_unpacked(self._packed()):
            raise too_large(self._path)
        return data

    def readinto(self, place: memoryview) -> int:
        data = self.read(len(place))
        place[: len(data)] = data
        return len(data)
