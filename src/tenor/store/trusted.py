"""Small files from untrusted sources: read without following links, up to a maximum size, as strict JSON."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from tenor.errors import TenorError

CHUNK = 1 << 20
HEAD = 64  # bytes that are looked at before a file is read
DEPTH = 64  # maximum nesting of lists and objects
CONTAINERS = 1 << 19  # maximum number of lists and objects: "[]," takes 3 bytes in a file and about 100 in memory
CONTAINER_BYTES = 16  # of text that a list or an object counts as, because it takes so much memory
_INT64 = (-(1 << 63), (1 << 63) - 1)
_OBJECT = rb"\s*\{"
_DISTRUST = "is not JSON that can be trusted"
_REMEDY = "use a file from a source that you trust"


@contextlib.contextmanager
def open_regular(path: Path, error: type[TenorError]) -> Iterator[int]:
    """A file descriptor of an ordinary file. Opening a pipe or a device does not block.

    Args:
        path: The file.
        error: Raised if the path is a link, a device, a pipe or a folder.

    Raises:
        FileNotFoundError: The file does not exist. Other system errors are passed on too.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise error("is a symbolic link, not a file", where=path, remedy=_REMEDY) from None
        if failure.errno == errno.ENXIO:  # a socket, or a missing device
            raise error("is not an ordinary file", where=path, remedy=_REMEDY) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise error("is not an ordinary file", where=path, remedy=_REMEDY)
        yield handle
    finally:
        os.close(handle)


def sha256_of(handle: int) -> str:
    """The hash of a whole open file."""
    with os.fdopen(handle, "rb", closefd=False) as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bytes(
    path: Path, limit: int, error: type[TenorError], check_head: Callable[[bytes], None] = lambda head: None
) -> bytes:
    """The bytes of an ordinary file of at most `limit` bytes; raises `error` for any other file, see `open_regular`.

    `check_head` gets the first HEAD bytes and raises an error if the file is of another kind. Then it is not read: a
    sparse file costs its author nothing, and its zeros would fill the memory.
    """
    with open_regular(path, error) as handle, os.fdopen(handle, "rb", closefd=False) as file:
        size = os.fstat(handle).st_size
        if size <= limit:
            check_head(os.pread(handle, HEAD, 0))
        data = b"" if size > limit else file.read(size + 1)  # allocates no more memory than needed
        while size < len(data) <= limit and (more := file.read(min(CHUNK, limit + 1 - len(data)))):
            data += more  # the file grows while it is read, or reports no size
    if size > limit or len(data) > limit:
        raise error(f"has more than the {limit:,} bytes allowed for such a file", where=path, remedy=_REMEDY)
    return data


def read_json(path: Path, limit: int, error: type[TenorError], *, file_names: bool = False) -> dict[str, Any]:
    """The JSON object in a file that `read_bytes` accepts.

    Raises `error` for text that is not UTF-8, NaN and infinities, integers beyond 64 bits, nesting deeper than `DEPTH`,
    more than `CONTAINERS` lists and objects, and lone surrogates. `file_names` allows the surrogates that stand for
    bytes of file names that are not UTF-8.
    """

    def check_head(head: bytes) -> None:
        if re.match(_OBJECT, head) is None and len(head) == HEAD:
            raise error(f"{_DISTRUST}: it is not an object", where=path, remedy=_REMEDY)

    return parse_json(read_bytes(path, limit, error, check_head), path, error, file_names=file_names)


def parse_json(data: bytes, path: Path, error: type[TenorError], *, file_names: bool = False) -> dict[str, Any]:
    """Like `read_json`, for bytes that were read from `path`."""
    try:
        if re.match(_OBJECT, data) is None:  # before the bytes are copied
            raise ValueError("it is not an object")
        if num_containers(data) > CONTAINERS:
            raise ValueError("it has too many lists and objects")
        value: dict[str, Any] = json.loads(
            data.decode("utf-8"), parse_int=_integer, parse_float=_number, parse_constant=_constant
        )
        _check_depth(value)
        if b"\\u" in data:  # only an escape can stand for a lone surrogate, as the data is UTF-8
            _check_texts(value, "surrogateescape" if file_names else "strict")
    except (ValueError, RecursionError) as failure:
        reason = "nested too deeply" if isinstance(failure, RecursionError) else failure
        raise error(f"{_DISTRUST}: {reason}", where=path, remedy=_REMEDY) from None
    return value


def num_containers(data: bytes) -> int:
    """The most lists and objects that JSON text can have; brackets in its strings count too."""
    return data.count(b"[") + data.count(b"{")


def kept_bytes(data: bytes) -> int:
    """What JSON text counts as where values are kept: its bytes, and more for each list and object.

    In memory, the values take up to eight times as much.
    """
    return len(data) + CONTAINER_BYTES * num_containers(data)


def _integer(text: str) -> int:
    if len(text) > 20 or not _INT64[0] <= (value := int(text)) <= _INT64[1]:
        raise ValueError("an integer has more than 64 bits")
    return value


def _number(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError("a number is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _check_depth(value: object) -> None:
    """Raise ValueError for deep nesting. Goes level by level."""
    level = [value]
    for _ in range(DEPTH):
        level = [inner for item in level if isinstance(item, dict | list) for inner in _contents(item)]
        if not level:
            return
    raise ValueError("nested too deeply")


def _contents(item: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item


def _check_texts(value: object, surrogates: str) -> None:
    """Raise ValueError for strings that cannot be written as UTF-8."""
    level = [value]
    while level:
        for item in level:
            if isinstance(item, str):
                _check_text(item, surrogates)
        level = [inner for item in level for inner in _inside(item)]


def _inside(item: object) -> list[Any]:
    if isinstance(item, dict):
        return [*item.keys(), *item.values()]
    return item if isinstance(item, list) else []


def _check_text(text: str, surrogates: str) -> None:
    try:
        text.encode("utf-8", surrogates)
    except UnicodeEncodeError:
        raise ValueError("a string has a lone surrogate") from None
