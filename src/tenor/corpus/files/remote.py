"""Files at URLs that fsspec can open. Every failure becomes one error that names the URL."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Iterator
from typing import Any

from tenor.errors import CorpusError, MissingExtra, TenorError, Unreachable

_SKIPPED = 1 << 20  # bytes read at once to move forward in a stream
_LONGEST_SILENCE = 300  # seconds to wait for the next byte


def is_url(path: str) -> bool:
    return "://" in path


def is_http(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def filesystem(path: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path on it."""
    import fsspec

    try:
        options = {"client_kwargs": {"timeout": _timeout()}} if is_http(path) else {}
        found: tuple[Any, str] = fsspec.core.url_to_fs(path, **options)
    except ImportError as error:
        raise MissingExtra(f"reading {path.split('://', 1)[0]}:// addresses", "remote") from error
    except ValueError as error:
        raise CorpusError(f"cannot be opened: {error}", where=path, remedy="check the address") from error
    return found


def _timeout() -> Any:
    """No limit for the whole file, only for the time between two bytes."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=_LONGEST_SILENCE, sock_read=_LONGEST_SILENCE)


@contextlib.contextmanager
def explained(path: str, what: str = "cannot be read") -> Iterator[None]:
    """Turn every exception of a file system into Unreachable with the reason and the URL."""
    try:
        yield
    except TenorError:
        raise
    except Exception as error:
        remedy = "check the address, or try again later"
        raise Unreachable(f"{what}: {_reason(error)}", where=path, remedy=remedy) from error


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):  # fsspec raises it for every failure of HTTP
        return _reason(error.__cause__) if error.__cause__ else "no such file"
    status, message = getattr(error, "status", None), getattr(error, "message", "")
    return f"{status} {message}" if status else str(error) or type(error).__name__


@functools.cache
def can_seek(path: str) -> bool:
    """Whether the file can be read from any position. Some HTTP servers only send whole files."""
    if not is_http(path):
        return True
    from fsspec.asyn import sync

    async def ask() -> bool:
        session = await system.set_session()
        headers = {**system.kwargs.get("headers", {}), "Range": "bytes=0-0"}
        async with session.get(system.encode_url(name), **{**system.kwargs, "headers": headers}) as response:
            if response.status != 416:  # 416: an empty file has no first byte
                response.raise_for_status()
            return bool(response.status == 206)

    system, name = filesystem(path)
    with explained(path):
        return bool(sync(system.loop, ask))


@contextlib.contextmanager
def open_remote(path: str) -> Iterator[Remote]:
    """The file at a URL, opened."""
    system, name = filesystem(path)
    options = {} if can_seek(path) else {"block_size": 0}  # makes fsspec open a stream
    with explained(path):
        file = system.open(name, "rb", **options)
    with contextlib.closing(file):
        yield Remote(file, path)


class Remote(io.RawIOBase):
    """A file at a URL. In a file that comes as a stream, seeking forward reads and drops bytes."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path, self._at = file, path, 0
        self._stream = getattr(file, "size", 0) is None

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes; fewer only at the end of the file."""
        parts = []
        with explained(self._path, "cannot be read to its end"):
            while size and (data := self._file.read(size)):
                parts.append(data)
                size = max(size - len(data), -1)
        found = b"".join(parts)
        self._at += len(found)
        return found

    def readinto(self, place: Any) -> int:
        data = self.read(len(place))
        place[: len(data)] = data
        return len(data)

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        if not self._stream:
            with explained(self._path):
                self._at = self._file.seek(at, whence)
            return self._at
        if whence != io.SEEK_SET or at < self._at:
            raise CorpusError(
                "the server does not send parts of a file", where=self._path, remedy="download the file first"
            )
        while self._at < at and self.read(min(_SKIPPED, at - self._at)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
