"""Measures how fast this machine multiplies matrices, an upper bound on the training speed."""

from __future__ import annotations

import json
import time

import torch

SIZE = 1024
SECONDS = 1.5


def rate() -> float:
    """Return the GFLOP/s of float32 products of 1024 × 1024 matrices, as the median of short measurements."""
    left, right, out = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE), torch.empty(SIZE, SIZE)
    began, rates = time.perf_counter(), []
    while time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        for _ in range(4):
            torch.mm(left, right, out=out)
        rates.append(4 * 2 * SIZE**3 / (time.perf_counter() - start) / 1e9)
    return sorted(rates)[len(rates) // 2]


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({"gflops": rate()}))
