"""What server and workers say to each other: a kind, a few JSON values and arrays, framed; nothing is pickled."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import WorkerError

HELLO = "hello"  # worker: its number, and over sockets the token
WORK = "work"  # server: a grant and the dense weights
ROWS = "rows"  # worker: the rows of embedding tables that the lease touches
VALUES = "values"  # server: those rows
PUSH = "push"  # worker: gradients, loss and counts
END = "end"  # server: the result, or why there is none
FAILED = "failed"  # worker: why it cannot go on
KINDS = (HELLO, WORK, ROWS, VALUES, PUSH, END, FAILED)

PREFIX = struct.Struct("!4sIQ")  # mark, bytes of JSON, bytes of arrays
MARK = b"tnr1"
MOST_JSON = 1 << 20
DTYPES = ("<f4", "<f8", "<i2", "<i4", "<i8")

Array = NDArray[Any]


@dataclass(frozen=True)
class Message:
    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()

    def encode(self) -> list[bytes | memoryview]:
        """The frame, in pieces."""
        arrays = [np.ascontiguousarray(array) for array in self.arrays]
        described = [[array.dtype.newbyteorder("<").str, list(array.shape)] for array in arrays]
        head = json.dumps({"kind": self.kind, "values": self.values, "arrays": described}).encode()
        prefix = PREFIX.pack(MARK, len(head), sum(array.nbytes for array in arrays))
        return [prefix + head, *(array.view(np.uint8).data for array in map(np.ravel, arrays) if array.nbytes)]


def frame_size(prefix: bytes | bytearray, limit: int) -> int:
    """How long a frame is as a whole, from its first bytes; refused where that is beyond the limit."""
    mark, head, body = PREFIX.unpack_from(prefix)
    if mark != MARK or head > MOST_JSON or PREFIX.size + head + body > limit:
        raise _refused("its frame is too large or none of ours")
    return int(PREFIX.size + head + body)


def decode(frame: bytes) -> Message:
    """The message in a whole frame."""
    _, length, _ = PREFIX.unpack_from(frame)
    at = PREFIX.size + length
    try:
        head = json.loads(frame[PREFIX.size : at])
        arrays = []
        for dtype, shape in head["arrays"]:
            if dtype not in DTYPES or not all(isinstance(extent, int) and extent >= 0 for extent in shape):
                raise ValueError(f"an array of {dtype}")
            count = math.prod(shape)
            arrays.append(np.frombuffer(frame, dtype, count, at).reshape(shape))
            at += arrays[-1].nbytes
        if at != len(frame) or head["kind"] not in KINDS or not isinstance(head["values"], dict):
            raise ValueError("left-over bytes, or an unknown kind")
    except (ValueError, KeyError, TypeError) as error:
        raise _refused(str(error)) from error
    return Message(head["kind"], head["values"], tuple(arrays))


def _refused(reason: str) -> WorkerError:
    return WorkerError(f"a message cannot be read ({reason})", remedy="run the same version everywhere")
