"""Freed memory stays with the process. A training step, or a task of prepare, takes and frees the same hundreds of
megabytes as the one before; handing them back each time costs up to a third of the speed in page faults."""

from __future__ import annotations

import ctypes
import functools
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's names: M_TRIM_THRESHOLD, M_MMAP_MAX


@functools.cache
def keep_freed_memory() -> bool:
    """Tell glibc to serve large blocks from its heap and never to trim it; False where there is no glibc."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))
