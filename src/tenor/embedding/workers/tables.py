"""What the workers share: the two tables of vectors, which blocks are taken and done, and when to wait and to stop."""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

LINE = 8  # numbers of a counter's cache line, so that cores do not fight over it
BLOCKS, LOSS, NUM_LOSSES, IS_READY = range(4)  # what a worker counts, and whether it has begun


class Tables:
    """Memory without a name that processes open through its handle; gone with the last of them."""

    def __init__(self, num_inputs: int, num_words: int, dim: int, workers: int, handle: int | None = None) -> None:
        split, numbers = num_inputs * dim, (num_inputs + num_words) * dim
        head = (workers + 1) * LINE
        self.num_bytes = 8 * head + 4 * numbers
        self.handle = _memory(self.num_bytes) if handle is None else handle
        self._map = mmap.mmap(self.handle, self.num_bytes)
        counters = np.frombuffer(self._map, np.float64, head).reshape(workers + 1, LINE)
        self.counters: npt.NDArray[np.float64] = counters[:workers]
        self._flags = counters[workers]
        vectors = np.frombuffer(self._map, np.float32, numbers, 8 * head)
        self.inputs: Floats = vectors[:split].reshape(num_inputs, dim)
        self.outputs: Floats = vectors[split:].reshape(num_words, dim)

    @property
    def both(self) -> tuple[Floats, Floats]:
        return self.inputs, self.outputs

    @property
    def is_stopped(self) -> bool:
        return bool(self._flags[0])

    @property
    def limit(self) -> float:
        """Workers wait before the blocks from this number on."""
        return float(self._flags[1])

    @limit.setter
    def limit(self, number: float) -> None:
        self._flags[1] = number

    def take(self) -> int:
        """The next place in the order of this machine's blocks; no two processes get the same one."""
        fcntl.lockf(self.handle, fcntl.LOCK_EX)  # the kernel gives it back if this process dies
        try:
            place = int(self._flags[2])
            self._flags[2] = place + 1
        finally:
            fcntl.lockf(self.handle, fcntl.LOCK_UN)
        return place

    def stop(self) -> None:
        """Ask the workers to end after the blocks they are at."""
        self._flags[0] = 1.0

    def close(self) -> None:
        os.close(self.handle)


def _memory(size: int) -> int:
    create = getattr(os, "memfd_create", None)  # Linux only
    if create is not None:
        handle: int = create("tenor-vectors")
    else:
        with tempfile.TemporaryFile(prefix="tenor-vectors-") as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, size)
    return handle
