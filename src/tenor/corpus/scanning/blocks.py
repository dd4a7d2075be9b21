"""A stream of bytes as blocks of whole lines, in bounded memory however long the lines are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from tenor.compiled import compiled

BLOCK = 2 << 20  # bytes read at once
MAX_LINE = 16 << 20  # longer lines are rejected: no review is that long, and memory must stay bounded
BOM = b"\xef\xbb\xbf"


def line_blocks(stream: BinaryIO, start: int = 0, end: int | None = None) -> Iterator[memoryview | None]:
    """Blocks of the whole lines that begin in [start, end); None stands for an overlong line.

    Each line ends with a newline, and only a newline ends a line. A line belongs to the range in which it begins, so
    ranges never overlap. The next block reuses the memory of the last one: copy what is needed longer.
    """
    rest = _LineRange(stream, start, end)
    buffer, held = bytearray(), 0  # bytes of a line whose end is not read yet
    while True:
        if len(buffer) < held + BLOCK:
            buffer = buffer[:held] + bytearray(2 * BLOCK)
        size = held + rest.read_into(memoryview(buffer)[held : held + BLOCK])
        if size == held:
            break
        cut = buffer.rfind(b"\n", held, size) + 1
        if cut == 0 and size > MAX_LINE:
            yield None
            rest.skip_line()
            held = 0
            continue
        if cut:
            yield memoryview(buffer)[:cut]
        buffer[: size - cut] = buffer[cut:size]
        held = size - cut
    if held:
        last = _finish_line(stream, bytes(buffer[:held])) if end is not None else bytes(buffer[:held])
        yield None if len(last) > MAX_LINE else memoryview(bytearray(last if last.endswith(b"\n") else last + b"\n"))


@compiled
def count_lines(data: Any) -> Any:
    """The number of newlines."""
    lines = 0
    for byte in data:
        lines += byte == 10
    return lines


class _LineRange:
    """The unread rest of a range of the stream."""

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
            first = self._read(len(BOM))
            self._held = b"" if first == BOM else first

    def read_into(self, place: memoryview) -> int:
        """Read into `place`; returns the number of bytes, 0 at the end of the range."""
        if self._held:
            size = min(len(self._held), len(place))
            place[:size], self._held = self._held[:size], self._held[size:]
            return size
        size = len(place) if self.left is None else min(len(place), self.left)
        count = self.stream.readinto(place[:size]) if size > 0 else 0  # type: ignore[attr-defined]
        if self.left is not None:
            self.left -= count
        return count

    def _read(self, size: int) -> bytes:
        place = bytearray(size)
        return bytes(place[: self.read_into(memoryview(place))])

    def skip_line(self) -> None:
        """Skip to the byte after the next newline, or to the end."""
        while data := self._read(BLOCK):
            at = data.find(b"\n")
            if at >= 0:
                self._held = data[at + 1 :]
                return


def _finish_line(stream: BinaryIO, carry: bytes) -> bytes:
    """The last line of a range, which continues beyond the end of the range."""
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
