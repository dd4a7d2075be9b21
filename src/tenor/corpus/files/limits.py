"""How much compressed content may unpack to. More than that is an attack or an accident."""

from __future__ import annotations

from tenor.errors import CorpusError

# Text compresses 3 to 10 times. Data that compresses hundreds of times, over this much output, is not text.
MAX_RATIO, RATIO_FROM = 250, 64 << 20
MAX_UNPACKED = 1 << 42


def largest_unpacked(packed: int) -> int:
    """The most bytes that `packed` bytes may unpack to."""
    return min(MAX_UNPACKED, max(RATIO_FROM, MAX_RATIO * packed))


def too_large(path: str, remedy: str = "if the file is genuine, unpack it first") -> CorpusError:
    """The error for a file that unpacks to more than the limit."""
    return CorpusError(f"unpacks to more than {MAX_RATIO} times its size", where=path, remedy=remedy)
