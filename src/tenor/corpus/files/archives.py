"""Zip archives. Members are read from the archive; nothing is unpacked to disk."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO, BinaryIO

from tenor.corpus.files.limits import largest_unpacked, too_large
from tenor.errors import CorpusError

_MAX_MEMBERS = 1000  # each member is opened separately, and archives of reviews have few members
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # both decompress in bounded memory
_ENCRYPTED = 1  # bit of the member's flags


def members(raw: BinaryIO, path: str, is_readable: Callable[[str], bool]) -> list[str]:
    """The sorted names of the members to read: those that `is_readable` accepts, or the only member of the archive."""
    with _archive(raw, path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir() and not _is_hidden(info.filename)]
    if len(infos) > 1:
        infos = [info for info in infos if is_readable(info.filename)]
    if not infos:
        raise CorpusError(
            "contains no file of a known format", where=path, remedy="unpack it and name the files to read"
        )
    names = sorted({info.filename for info in infos})
    if len(names) > _MAX_MEMBERS:
        raise CorpusError(f"contains more than {_MAX_MEMBERS:,} files", where=path, remedy="unpack the archive first")
    return names


def packed_size(raw: BinaryIO, path: str, member: str) -> int:
    """Compressed bytes of a member."""
    with _archive(raw, path) as archive:
        return archive.getinfo(member).compress_size


@contextlib.contextmanager
def open_member(raw: BinaryIO, path: str, member: str) -> Iterator[tuple[IO[bytes], int]]:
    """A stream of a member's content, and the member's compressed bytes."""
    with _archive(raw, path) as archive:
        info = archive.getinfo(member)
        if info.flag_bits & _ENCRYPTED:
            raise CorpusError(f"{member} is encrypted", where=path, remedy="decrypt and unpack the archive first")
        if info.compress_type not in _METHODS:
            raise CorpusError(f"{member} is not compressed with deflate", where=path, remedy="unpack the archive first")
        try:
            stream = archive.open(info)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
            raise _damaged(path, error) from error
        with stream:
            yield stream, info.compress_size


@contextlib.contextmanager
def _archive(raw: BinaryIO, path: str) -> Iterator[zipfile.ZipFile]:
    """The opened archive; CorpusError if the sizes that it declares for its members cannot be true."""
    try:
        archive = zipfile.ZipFile(raw)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise _damaged(path, error) from error
    with archive:
        size = raw.seek(0, 2)
        infos = archive.infolist()
        if sum(info.compress_size for info in infos) > size:
            raise _damaged(path, "its members declare more bytes than the archive has")
        if sum(info.file_size for info in infos) > largest_unpacked(size):
            raise too_large(path)
        yield archive


def _damaged(path: str, error: object) -> CorpusError:
    return CorpusError(f"damaged zip data: {error}", where=path, remedy="fetch the file again")


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
