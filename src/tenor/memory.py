"""Keeps freed memory in the process, and reports how much memory is used and free.

Each training step, and each task of prepare, allocates and frees the same hundreds of megabytes. Returning this memory
to the system every time causes page faults that cost up to a third of the speed.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from tenor import cgroup

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX in glibc


@functools.cache
def keep_freed_memory() -> bool:
    """Make glibc allocate large blocks on its heap and never shrink the heap. Return False without glibc."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))


def reserve(num_bytes: int) -> None:
    """Allocate and free `num_bytes` on the heap, so that later allocations cause no page faults."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    if keep_freed_memory() and num_bytes > 0 and (block := libc.malloc(num_bytes)):
        ctypes.memset(block, 0, num_bytes)
        libc.free(block)


def resident_bytes() -> int:
    """Return the memory this process holds, used or free (Linux only)."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_bytes() -> int:
    """Return the unused memory of the machine, without file caches, and at most what the container may still use."""
    machine = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min(machine, cgroup.free_memory()))
