"""Messages between the service and the process that computes: JSON with a length before it."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def write_message(pipe: IO[bytes], value: Any) -> None:
    """Write one message.

    Raises:
        OSError: The other side has closed the pipe.
    """
    data = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Any:
    """Read one message.

    Raises:
        EOFError: The other side has closed the pipe.
    """
    head = pipe.read(_LENGTH.size)
    data = pipe.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
    if not data:
        raise EOFError
    return json.loads(data)
