"""A stream of bytes cut into blocks of whole lines, with memory bounded whatever the lines are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

BLOCK = 2 << 20
MAX_LINE = 16 << 20  # a longer line is refused: no review is that long, and memory must stay bounded
BOM = b"\xef\xbb\xbf"


def line_blocks(stream: BinaryIO, start: int = 0, end: int | None = None) -> Iterator[bytes | None]:
    """Blocks of whole lines (each ends in a newline) that begin in [start, end); None stands for an overlong line.

    Only a newline ends a line. A line belongs to the range in which it begins, so ranges share nothing.
    """
    left = _Left(stream, start, end)
    carry = b""
    while True:
        block = left.read()
        if not block:
            break
        data = carry + block if carry else block
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) > MAX_LINE:
            yield None
            left.skip_line()
            carry = b""
            continue
        if cut:
            yield data[:cut]
        carry = data[cut:]
    if carry:
        carry = _finish_line(stream, carry) if end is not None else carry
        yield None if len(carry) > MAX_LINE else (carry if carry.endswith(b"\n") else carry + b"\n")


class _Left:
    """What is left of a range of the stream."""

    def __init__(self, stream: BinaryIO, start: int, end: int | None) -> None:
        self.stream = stream
        self.left = None if end is None else end - start
        self._held = b""
        if start > 0:
            stream.seek(start - 1)
            if self.left is not None:
                self.left += 1
            self.skip_line()
        else:
            first = self.read(3)
            self._held = first.removeprefix(BOM) if first == BOM else first

    def read(self, size: int = BLOCK) -> bytes:
        if self._held:
            held, self._held = self._held, b""
            return held + self.read(size)
        if self.left is not None:
            size = min(size, self.left)
        data = self.stream.read(size) if size > 0 else b""
        if self.left is not None:
            self.left -= len(data)
        return data

    def skip_line(self) -> None:
        """Go on after the next newline, or to the end."""
        while data := self.read():
            at = data.find(b"\n")
            if at >= 0:
                self._held = data[at + 1 :]
                return


def _finish_line(stream: BinaryIO, carry: bytes) -> bytes:
    """The last line of a range runs on into the next range."""
    parts, size = [carry], len(carry)
    while data := stream.read(BLOCK):
        at = data.find(b"\n")
        part = data if at < 0 else data[: at + 1]
        if size <= MAX_LINE:
            parts.append(part)
        size += len(part)
        if at >= 0:
            break
    return b"".join(parts) if size <= MAX_LINE else b"x" * (MAX_LINE + 1)
