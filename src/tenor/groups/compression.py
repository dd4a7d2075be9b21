"""Compression of gradients: none, 16 bits per number, or only the largest numbers.

A compression can sum a tensor over the workers in place, as a group does, or pack a tensor for one receiver, which
unpacks it. Top-k keeps the numbers that it does not send and adds them to the next gradient (error feedback), so no
part of a gradient is lost for good (Stich et al. 2018, "Sparsified SGD with Memory").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.groups import Group, Pending


class Compression(Protocol):
    memory: dict[str, Tensor]  # numbers that this worker holds back, by the name of the tensor
    num_parts: int  # the number of arrays that a packed tensor consists of

    def remember(self, name: str, like: Tensor) -> None:
        """Allocate memory for the numbers that may be held back of the tensor of this name."""

    def start(self, group: Group, name: str, flat: Tensor, rows: Tensor | None = None) -> Pending:
        """Begin to sum; after `wait`, the 1-D `flat` holds the sum. For a table, `rows` are the rows in `flat`."""

    def num_bytes(self, flat: Tensor, size: int) -> int:
        """The number of bytes that are summed instead of the tensor."""

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None, push: int = 0) -> list[Tensor]:
        """The arrays to send to a single receiver instead of the tensor, which may be overwritten.

        All tensors of one push have the same number `push`.
        """

    def settle(self, refused: Collection[int], undecided: Collection[int]) -> None:
        """Learn which pushes so far were refused and which are undecided; all others were applied.

        A refused push is undone: the numbers that it held back are dropped, and the numbers of earlier gradients that
        it carried are held back again.
        """

    def fits(self, parts: Sequence[NDArray[Any]], size: int, dtype: np.dtype[Any]) -> bool:
        """Whether `unpack` accepts these arrays as a tensor of `size` numbers."""

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        """Fill the tensor with the packed numbers."""


class Uncompressed:
    """No compression."""

    memory: dict[str, Tensor]
    num_parts = 1

    def __init__(self) -> None:
        self.memory = {}

    def remember(self, name: str, like: Tensor) -> None:
        pass

    def start(self, group: Group, name: str, flat: Tensor, rows: Tensor | None = None) -> Pending:
        return group.start_sum(flat)

    def num_bytes(self, flat: Tensor, size: int) -> int:
        return flat.nbytes

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None, push: int = 0) -> list[Tensor]:
        return [flat]

    def settle(self, refused: Collection[int], undecided: Collection[int]) -> None:
        pass

    def fits(self, parts: Sequence[NDArray[Any]], size: int, dtype: np.dtype[Any]) -> bool:
        return parts[0].shape == (size,) and parts[0].dtype == dtype

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        flat.copy_(parts[0])


class Half(Uncompressed):
    """Sums in 16 bits: fp16 is more precise, bf16 has the range of fp32. `scale` keeps sums in the range of fp16."""

    def __init__(self, dtype: torch.dtype, scale: float) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def start(self, group: Group, name: str, flat: Tensor, rows: Tensor | None = None) -> Pending:
        small = self._small(flat)
        return _Then(group.start_sum(small), lambda: flat.copy_(small).div_(self.scale))

    def num_bytes(self, flat: Tensor, size: int) -> int:
        return flat.numel() * self.dtype.itemsize

    def _small(self, flat: Tensor) -> Tensor:
        return (flat * self.scale).to(self.dtype)

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None, push: int = 0) -> list[Tensor]:
        return [self._small(flat).view(torch.int16)]

    def fits(self, parts: Sequence[NDArray[Any]], size: int, dtype: np.dtype[Any]) -> bool:
        return super().fits(parts, size, np.dtype(np.int16))

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        flat.copy_(parts[0].view(self.dtype)).div_(self.scale)


class TopK(Uncompressed):
    """A share of the numbers, the largest ones. Every worker chooses its own, so positions travel with the values."""

    num_parts = 2

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        # For each push that may still be refused: (name of the tensor, its rows, change of the numbers held back)
        self.changes: dict[int, list[tuple[str, Tensor | None, Tensor]]] = {}

    def remember(self, name: str, like: Tensor) -> None:
        self.memory[name] = torch.zeros_like(like)

    def _count(self, flat: Tensor) -> int:
        return math.ceil(self.share * flat.numel())

    def start(self, group: Group, name: str, flat: Tensor, rows: Tensor | None = None) -> Pending:
        return self._send(group, flat, *self._choose(name, flat, rows))

    def _choose(self, name: str, flat: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """The positions and values to send; the other numbers are held back."""
        memory = self.memory[name]
        flat += (memory if rows is None else memory.index_select(0, rows)).flatten()
        positions = flat.abs().topk(self._count(flat)).indices
        values = flat[positions]
        flat[positions] = 0.0
        if not values.isfinite().all():  # all workers skip this step, which must not affect later steps
            pass
        elif rows is None:
            memory.copy_(flat.view_as(memory))
        else:
            memory.index_copy_(0, rows, flat.view(len(rows), -1))
        return positions, values

    def _send(self, group: Group, flat: Tensor, positions: Tensor, values: Tensor) -> Pending:
        """Each worker fills its own row of an integer table with the bits of its values, so that the sum is exact."""
        whole = torch.int32 if flat.element_size() == 4 else torch.int64
        table = torch.zeros((group.size, 2, len(positions)), dtype=whole, device=flat.device)
        table[group.rank, 0], table[group.rank, 1] = positions.to(whole), values.view(whole)

        def unpack() -> None:
            flat.zero_()
            for one in table:  # in the order of ranks, so that every worker gets the same bits
                flat.index_add_(0, one[0].long(), one[1].contiguous().view(flat.dtype))

        return _Then(group.start_sum(table), unpack)

    def num_bytes(self, flat: Tensor, size: int) -> int:
        return 2 * flat.element_size() * self._count(flat) * size

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None, push: int = 0) -> list[Tensor]:
        before = self._held(name, rows)
        positions, values = self._choose(name, flat, rows)
        self.changes.setdefault(push, []).append((name, rows, self._held(name, rows).sub_(before)))
        return [positions.to(torch.int32), values]

    def _held(self, name: str, rows: Tensor | None) -> Tensor:
        memory = self.memory[name]
        return memory.clone() if rows is None else memory.index_select(0, rows)

    def settle(self, refused: Collection[int], undecided: Collection[int]) -> None:
        for push in refused:
            for name, rows, change in self.changes.get(push, []):
                if rows is None:
                    self.memory[name].sub_(change)
                else:
                    self.memory[name].index_add_(0, rows, change, alpha=-1.0)
        self.changes = {push: changes for push, changes in self.changes.items() if push in undecided}

    def fits(self, parts: Sequence[NDArray[Any]], size: int, dtype: np.dtype[Any]) -> bool:
        positions, values = parts
        is_typed = positions.dtype == np.int32 and values.dtype == dtype
        if not is_typed or positions.ndim != 1 or positions.shape != values.shape:
            return False
        return not len(positions) or (int(positions.min()) >= 0 and int(positions.max()) < size)

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        flat.zero_().index_copy_(0, parts[0].long(), parts[1])


class _Then:
    """Wait for a message, then call a function."""

    def __init__(self, pending: Pending, finish: Callable[[], object]) -> None:
        self.pending, self.finish = pending, finish

    def wait(self) -> None:
        self.pending.wait()
        self.finish()


def make_compression(name: str, top_k: float, batch_size: int) -> Compression:
    """The compression that `--compress` names; `top_k` is the share of the numbers that top-k sends."""
    if name == "top-k":
        return TopK(top_k)
    if name in ("fp16", "bf16"):
        return Half(torch.float16 if name == "fp16" else torch.bfloat16, 1.0 / batch_size)
    return Uncompressed()
