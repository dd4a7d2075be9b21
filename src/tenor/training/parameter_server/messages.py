"""Messages between server and workers: a kind, a few JSON values and arrays in one frame; nothing is pickled."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import WorkerError

HELLO = "hello"  # worker: ready for its first lease; over sockets, the greeting stands for it
WORK = "work"  # server: a grant, the fate of earlier pushes, and the dense weights
ROWS = "rows"  # worker: the rows of each embedding table that the lease touches
VALUES = "values"  # server: those rows
PUSH = "push"  # worker: gradients, loss and counts
END = "end"  # server: the result of the run, or why there is none
FAILED = "failed"  # worker: why it cannot continue
KINDS = (HELLO, WORK, ROWS, VALUES, PUSH, END, FAILED)

PREFIX = struct.Struct("!4sIQ")  # mark, bytes of JSON, bytes of arrays
MARK = b"tnr1"
MOST_JSON = 1 << 20
MOST_EXTENT = 1 << 40  # of one dimension; an array without elements may have a width
DTYPES = ("<f4", "<f8", "<i2", "<i4", "<i8")

Array = NDArray[Any]


@dataclass(frozen=True)
class Message:
    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()

    def encode(self) -> list[bytes | memoryview]:
        """The bytes of the frame, in several buffers."""
        arrays = [np.ascontiguousarray(array) for array in self.arrays]
        described = [[array.dtype.newbyteorder("<").str, list(array.shape)] for array in arrays]
        head = json.dumps({"kind": self.kind, "values": self.values, "arrays": described}).encode()
        prefix = PREFIX.pack(MARK, len(head), sum(array.nbytes for array in arrays))
        return [prefix + head, *(array.view(np.uint8).data for array in map(np.ravel, arrays) if array.nbytes)]


def frame_size(prefix: bytes | bytearray, limit: int) -> int:
    """The size of a whole frame, from its first bytes; WorkerError if it exceeds the limit."""
    mark, head, body = PREFIX.unpack_from(prefix)
    if mark != MARK or head > MOST_JSON or PREFIX.size + head + body > limit:
        raise refused("its frame is too large, or not a frame of this protocol")
    return int(PREFIX.size + head + body)


def decode(frame: bytes) -> Message:
    """The message in a whole frame. For any bytes, the result is a message or a `WorkerError`."""
    if len(frame) < PREFIX.size or frame_size(frame, len(frame)) != len(frame):
        raise refused("its frame is incomplete")
    _, length, _ = PREFIX.unpack_from(frame)
    at = PREFIX.size + length
    try:
        head = json.loads(frame[PREFIX.size : at])
        if head["kind"] not in KINDS or not isinstance(head["values"], dict) or not isinstance(head["arrays"], list):
            raise ValueError("an unknown kind of message")
        arrays = []
        for dtype, shape in head["arrays"]:
            arrays.append(_read_array(frame, at, dtype, shape))
            at += arrays[-1].nbytes
        if at != len(frame):
            raise ValueError("bytes are left over")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise refused(str(error)) from error
    return Message(head["kind"], head["values"], tuple(arrays))


def _read_array(frame: bytes, at: int, dtype: object, shape: object) -> Array:
    """A view of the frame. Nothing is allocated for a shape that exceeds the frame."""
    if dtype not in DTYPES or not isinstance(shape, list) or not all(_is_extent(extent) for extent in shape):
        raise ValueError("an array of an unknown kind")
    if math.prod(shape) * np.dtype(dtype).itemsize > len(frame) - at:
        raise ValueError("an array longer than its frame")
    return np.frombuffer(frame, dtype, math.prod(shape), at).reshape(shape)


def _is_extent(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_EXTENT


def refused(reason: str) -> WorkerError:
    """The error of a message that cannot be used."""
    return WorkerError(f"a message cannot be read ({reason})", remedy="run the same version of Tenor on all hosts")
