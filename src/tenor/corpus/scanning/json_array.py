"""A JSON array as JSON lines, in bounded memory: each element becomes one line."""

# ruff: noqa: PLR0912 - compiled loops stay in one function
from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

import numpy as np

from tenor.compiled import compiled
from tenor.errors import CorpusError

_CHUNK = 1 << 18
DEPTH, IN_STRING, ESCAPED, STARTED, DONE = range(5)  # the state that `split_array` keeps between two blocks


def array_lines(stream: BinaryIO, where: str) -> BinaryIO:
    """A stream with one line per element of the JSON array in `stream`; the numbers of lines and elements agree."""
    return cast(BinaryIO, io.BufferedReader(_ArrayLines(stream, where), _CHUNK))


class _ArrayLines(io.RawIOBase):
    def __init__(self, stream: BinaryIO, where: str) -> None:
        self.stream, self.where, self.state = stream, where, np.zeros(5, np.int64)

    def readable(self) -> bool:
        return True

    def readinto(self, place: Any) -> int:
        data = self.stream.read(len(place))
        block = np.frombuffer(data, np.uint8).copy()
        split_array(block, self.state)
        place[: len(data)] = block.tobytes()
        if not data and not self.state[DONE]:
            raise CorpusError("the JSON array has no end", where=self.where, remedy="fetch the file again")
        return len(data)


@compiled
def split_array(data: Any, state: Any) -> None:
    """Turn the commas between an array's elements into newlines, and all other newlines in it into spaces."""
    for i in range(data.shape[0]):
        byte = data[i]
        if state[DONE]:
            continue
        if state[IN_STRING]:
            if state[ESCAPED]:
                state[ESCAPED] = 0
            elif byte == 92:
                state[ESCAPED] = 1
            elif byte == 34:
                state[IN_STRING] = 0
        elif byte == 34:
            state[IN_STRING] = 1
        elif byte in (91, 123):
            state[DEPTH] += 1
            if not state[STARTED]:
                state[STARTED], data[i] = 1, 32
        elif byte in (93, 125):
            state[DEPTH] -= 1
            if state[DEPTH] <= 0:
                state[DONE], data[i] = 1, 10
        elif byte in (10, 13):
            data[i] = 32
        elif byte == 44 and state[DEPTH] == 1:
            data[i] = 10
