"""TOML files, which a stranger may have written: limited in size and nesting, and refused in one line."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenor.errors import UsageError

MAX_BYTES = 256 << 10
MAX_DOTS = 100  # in a line: the time to read dotted keys grows with the square of their parts
MAX_INTEGER = (1 << 63) - 1


def read_toml(file: Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Read a TOML file; a link to an ordinary file is followed.

    Args:
        file: The file.
        parse_float: Makes a number of the text of each float.

    Raises:
        OSError: The file does not exist or cannot be read.
        UsageError: The file is something else, too large, or not TOML.
    """
    try:
        text = _read_bytes(file).decode("utf-8")
        if max((line.count(".") for line in text.splitlines()), default=0) > MAX_DOTS:
            raise ValueError("a key is nested too deeply")
        values = tomllib.loads(text, parse_float=parse_float)
        _check_integers(values)
    except RecursionError as error:
        raise UsageError("is not valid TOML: nested too deeply", where=file, remedy="correct the file") from error
    except ValueError as error:  # also what tomllib raises
        raise UsageError(f"is not valid TOML: {error!s:.200}", where=file, remedy="correct the file") from error
    return values


def _read_bytes(file: Path) -> bytes:
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe does not block
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UsageError("is not an ordinary file", where=file, remedy="give a TOML file")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise UsageError(f"has more than the {MAX_BYTES:,} bytes allowed", where=file, remedy="give a TOML file")
    return data


def _check_integers(value: object) -> None:
    """Raise ValueError for integers beyond 64 bits, which TOML does not have and arithmetic may not survive."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_integers(inner)
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError("an integer has more than 64 bits")
