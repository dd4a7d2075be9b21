"""What gradients become to travel: the null case, half the bytes a number, or only the largest numbers.

A compression begins to sum a tensor over the workers in place, as a group does, and says how many bytes stood in for
it; or it packs the tensor for one receiver, who unpacks it. What top-k leaves out is kept and added to the next
gradient (error feedback), so that nothing is lost for good (Stich et al. 2018, "Sparsified SGD with Memory").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from tenor.training.groups import Group, Pending


class Compression(Protocol):
    memory: dict[str, Tensor]  # what a worker holds back, by the name of the tensor
    num_parts: int  # that a packed tensor comes in

    def remember(self, name: str, like: Tensor) -> None:
        """Make room for what may be held back of tensors of that name."""

    def start(self, group: Group, name: str, flat: Tensor, rows: Tensor | None = None) -> Pending:
        """Begin to sum; after `wait` the 1-D `flat` holds the sum. `rows` are those of a table that it covers."""

    def num_bytes(self, flat: Tensor, size: int) -> int:
        """How many bytes are summed in place of the tensor."""

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None) -> list[Tensor]:
        """What travels to a single receiver in place of the tensor, which may be spoilt by it."""

    def take_back(self) -> None:
        """The tensors packed last were not used: what was held back of them is forgotten."""

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        """Fill the tensor with what was packed."""


class Uncompressed:
    """The null case: the sum itself."""

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

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None) -> list[Tensor]:
        return [flat]

    def take_back(self) -> None:
        pass

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        flat.copy_(parts[0])


class Half(Uncompressed):
    """Sums in 16 bits: fp16 is finer, bf16 has the range of fp32. `scale` keeps sums over a batch within fp16."""

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

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None) -> list[Tensor]:
        return [self._small(flat).view(torch.int16)]

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        flat.copy_(parts[0].view(self.dtype)).div_(self.scale)


class TopK(Uncompressed):
    """The share of numbers that are largest; every worker chooses its own, so places travel beside values."""

    num_parts = 2

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.before: dict[str, tuple[Tensor | None, Tensor]] = {}  # what was held back until the last packing

    def remember(self, name: str, like: Tensor) -> None:
        self.memory[name] = torch.zeros_like(like)

    def _count(self, flat: Tensor) -> int:
        return math.ceil(self.share * flat.numel())

    def start(self, group: Group, name: str, flat: Tensor, rows: Tensor | None = None) -> Pending:
        return self._send(group, flat, *self._choose(name, flat, rows))

    def _choose(self, name: str, flat: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """The places and values that go; the others are kept."""
        memory = self.memory[name]
        flat += (memory if rows is None else memory.index_select(0, rows)).flatten()
        places = flat.abs().topk(self._count(flat)).indices
        values = flat[places]
        flat[places] = 0.0
        if not values.isfinite().all():  # a step that all will skip: it must not spoil the steps to come
            pass
        elif rows is None:
            memory.copy_(flat.view_as(memory))
        else:
            memory.index_copy_(0, rows, flat.view(len(rows), -1))
        return places, values

    def _send(self, group: Group, flat: Tensor, places: Tensor, values: Tensor) -> Pending:
        """Each worker fills its own row of a table of whole numbers, whose sum is exact: values go as their bits."""
        whole = torch.int32 if flat.element_size() == 4 else torch.int64
        table = torch.zeros((group.size, 2, len(places)), dtype=whole, device=flat.device)
        table[group.rank, 0], table[group.rank, 1] = places.to(whole), values.view(whole)

        def unpack() -> None:
            flat.zero_()
            for one in table:  # in order of rank: the same bits on every worker
                flat.index_add_(0, one[0].long(), one[1].contiguous().view(flat.dtype))

        return _Then(group.start_sum(table), unpack)

    def num_bytes(self, flat: Tensor, size: int) -> int:
        return 2 * flat.element_size() * self._count(flat) * size

    def pack(self, name: str, flat: Tensor, rows: Tensor | None = None) -> list[Tensor]:
        memory = self.memory[name]
        self.before[name] = rows, memory.clone() if rows is None else memory.index_select(0, rows)
        places, values = self._choose(name, flat, rows)
        return [places.to(torch.int32), values]

    def take_back(self) -> None:
        for name, (rows, before) in self.before.items():
            if rows is None:
                self.memory[name].copy_(before)
            else:
                self.memory[name].index_copy_(0, rows, before)

    def unpack(self, parts: list[Tensor], flat: Tensor) -> None:
        flat.zero_().index_copy_(0, parts[0].long(), parts[1])


class _Then:
    """Wait, then put the sum where it belongs."""

    def __init__(self, pending: Pending, finish: Callable[[], object]) -> None:
        self.pending, self.finish = pending, finish

    def wait(self) -> None:
        self.pending.wait()
        self.finish()


def make_compression(name: str, top_k: float, batch_size: int) -> Compression:
    if name == "top-k":
        return TopK(top_k)
    if name in ("fp16", "bf16"):
        return Half(torch.float16 if name == "fp16" else torch.bfloat16, 1.0 / batch_size)
    return Uncompressed()
