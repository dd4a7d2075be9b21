"""The keys of JSON lines: the first lines tell as a rule; where they do not, many more are looked at."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tenor.corpus.blocks import BOM, MAX_LINE, line_blocks
from tenor.corpus.jsonlines import parse_object
from tenor.corpus.streams import open_unpacked

_FEW, _MANY, _BYTES = 100, 10_000, 32 << 20  # lines looked at first; lines and bytes looked at then


def first_keys(start: bytes) -> list[str]:
    """The keys of the first lines, from the bytes that a file starts with."""
    lines = start.removeprefix(BOM).split(b"\n")
    return _keys(lines[:-1][:_FEW] or lines)


def more_keys(path: str, compression: str) -> tuple[list[str], bool]:
    """The keys of many lines, and whether these are the whole file."""
    lines: list[bytes] = []
    size = 0
    with open_unpacked(path, compression) as stream:
        for line in _lines(stream):
            if len(lines) == _MANY or size > _BYTES:
                return _keys(lines), False
            lines.append(line)
            size += len(line) or MAX_LINE
    return _keys(lines), True


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines with their ends; an overlong one is empty."""
    for block in line_blocks(stream):
        yield from io.BytesIO(block) if block is not None else [b""]


def _keys(lines: Iterable[bytes]) -> list[str]:
    """The keys of those lines that are JSON objects."""
    keys: dict[str, None] = {}
    for line in lines:
        pairs = parse_object(line.decode("utf-8", "replace").encode())  # names matter here, not texts
        if not isinstance(pairs, str):
            keys.update(dict.fromkeys(key for key, _ in pairs))
    return list(keys)
