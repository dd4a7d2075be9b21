"""The processes that train together, and the few messages they need. Alone is the null case: callers never ask."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Protocol

import torch
from torch import Tensor
from torch import distributed as dist

from tenor.errors import UsageError, WorkerError
from tenor.world import World


class Pending(Protocol):
    def wait(self) -> object: ...


class Group(Protocol):
    rank: int
    size: int

    def start_sum(self, tensor: Tensor) -> Pending:
        """Begin to add the tensor up over all ranks, in place; every rank starts the same sums in the same order."""

    def gather(self, values: Tensor) -> Tensor:
        """Every rank's 1-D values, one after another."""

    def close(self) -> None: ...


class _Done:
    def wait(self) -> None:
        pass


class Alone:
    """A group of one: every message is the identity."""

    rank = 0
    size = 1

    def start_sum(self, tensor: Tensor) -> Pending:
        return _Done()

    def gather(self, values: Tensor) -> Tensor:
        return values

    def close(self) -> None:
        pass


class GlooGroup:
    """Processes that meet at the world's rendezvous: a file for local workers, whose traffic stays on loopback."""

    def __init__(self, world: World, timeout: float) -> None:
        self.rank, self.size = world.rank, world.size
        if world.rendezvous.startswith("file://"):
            os.environ["GLOO_SOCKET_IFNAME"] = loopback_interface()
        try:
            dist.init_process_group(
                "gloo",
                init_method=world.rendezvous,
                rank=world.rank,
                world_size=world.size,
                timeout=timedelta(seconds=timeout),
            )
        except RuntimeError as error:
            raise _lost(error) from error

    def start_sum(self, tensor: Tensor) -> Pending:
        try:
            work = dist.all_reduce(tensor, async_op=True)
        except RuntimeError as error:
            raise _lost(error) from error
        return _Work(work)

    def gather(self, values: Tensor) -> Tensor:
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(values)
        self.start_sum(counts).wait()
        padded = values.new_zeros((self.size, int(counts.max())))
        padded[self.rank, : len(values)] = values
        self.start_sum(padded).wait()
        return torch.cat([row[:count] for row, count in zip(padded, counts.tolist(), strict=True)])

    def close(self) -> None:
        dist.destroy_process_group()


class _Work:
    def __init__(self, work: Pending) -> None:
        self.work = work

    def wait(self) -> None:
        try:
            self.work.wait()
        except RuntimeError as error:
            raise _lost(error) from error


def join(world: World, timeout: float) -> Group:
    """The group of this world."""
    return GlooGroup(world, timeout) if world.size > 1 else Alone()


def loopback_interface() -> str:
    """`lo` on Linux, `lo0` on macOS."""
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if not names:
        raise UsageError("this machine has no loopback interface", remedy="bring it up, or train with --workers 1")
    return names[0]


def _lost(error: RuntimeError) -> WorkerError:
    reason = str(error).splitlines()[0]
    return WorkerError(f"lost contact with the other workers ({reason})", remedy="see which one failed first")
