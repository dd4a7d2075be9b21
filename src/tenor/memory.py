"""Freed memory stays with the process. A training step, or a task of prepare, takes and frees the same hundreds of
megabytes as the one before; handing them back each time costs up to a third of the speed in page faults."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's names: M_TRIM_THRESHOLD, M_MMAP_MAX


@functools.cache
def keep_freed_memory() -> bool:
    """Tell glibc to serve large blocks from its heap and never to trim it; False where there is no glibc."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))


def reserve(num_bytes: int) -> None:
    """Touch that much memory and free it into the kept heap, so that using it later costs no page faults."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    if keep_freed_memory() and num_bytes > 0 and (block := libc.malloc(num_bytes)):
        ctypes.memset(block, 0, num_bytes)
        libc.free(block)


def resident_bytes() -> int:
    """Memory this process has in use or kept; Linux only."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_bytes() -> int:
    """Memory of the machine that nothing uses, not even as a cache of files."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
