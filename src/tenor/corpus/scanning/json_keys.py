"""The keys of JSON lines, from the first lines; if those are not enough, from many more."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tenor.corpus.scanning.blocks import BOM, MAX_LINE, line_blocks
from tenor.corpus.scanning.json_objects import parse_object

_FEW = 100  # lines that `first_keys` looks at
_MANY, _BYTES = 10_000, 32 << 20  # lines and bytes that `more_keys` looks at


def first_keys(start: bytes) -> list[str]:
    """The keys of the first lines, from the first bytes of a file."""
    lines = start.removeprefix(BOM).split(b"\n")
    return _keys(lines[:-1][:_FEW] or lines)


def more_keys(stream: BinaryIO) -> tuple[list[str], bool]:
    """The keys of many lines, and whether these lines are the whole file."""
    lines: list[bytes] = []
    size = 0
    for line in _lines(stream):
        if len(lines) == _MANY or size > _BYTES:
            return _keys(lines), False
        lines.append(line)
        size += len(line) or MAX_LINE
    return _keys(lines), True


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines with their newlines; an overlong line is empty."""
    for block in line_blocks(stream):
        yield from io.BytesIO(block) if block is not None else [b""]


def _keys(lines: Iterable[bytes]) -> list[str]:
    """The keys of the lines that are JSON objects."""
    keys: dict[str, None] = {}
    for line in lines:
        pairs = parse_object(line.decode("utf-8", "replace").encode())  # only the keys matter here
        if not isinstance(pairs, str):
            keys.update(dict.fromkeys(key for key, _ in pairs))
    return list(keys)
