"""A group over torch.distributed: gloo between processors, NCCL between GPUs."""

from __future__ import annotations

import copy
import os
import socket
from datetime import timedelta
from typing import Self

import torch
from torch import Tensor
from torch import distributed as dist

from tenor.errors import UsageError, WorkerError
from tenor.training.groups.base import Pending, gather_by_sums
from tenor.world import World


class CollectiveGroup:
    """Processes that meet at the world's rendezvous: a file for local workers, whose traffic stays on loopback."""

    def __init__(self, world: World, backend: str, timeout: float) -> None:
        self.rank, self.size = world.rank, world.size
        self.device = torch.device("cuda" if backend == "nccl" else "cpu")
        if world.rendezvous.startswith("file://"):
            os.environ["GLOO_SOCKET_IFNAME"] = loopback_interface()
        # torchrun's agent holds the store already, so its workers must not open one of their own
        method = "env://" if world.launcher == "torchrun" else world.rendezvous
        self.limit = timedelta(seconds=timeout)
        self.handle: dist.ProcessGroup | None = None  # everybody
        try:
            dist.init_process_group(backend, method, self.limit, world_size=world.size, rank=world.rank)
        except (RuntimeError, ValueError) as error:
            raise lost(error) from error

    def start_sum(self, tensor: Tensor) -> Pending:
        try:
            return _Work(dist.all_reduce(tensor, group=self.handle, async_op=True))
        except RuntimeError as error:
            raise lost(error) from error

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        try:
            return _Work(dist.isend(tensor, group=self.handle, tag=tag, group_dst=to))
        except RuntimeError as error:
            raise lost(error) from error

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending:
        try:
            return _Work(dist.irecv(tensor, group=self.handle, tag=tag, group_src=source))
        except RuntimeError as error:
            raise lost(error) from error

    def split(self, colour: int) -> Self:
        part = copy.copy(self)
        colours = self.gather(torch.tensor([colour])).tolist()
        for one in sorted(set(colours)):  # every rank has to make every group
            ranks = [rank for rank, other in enumerate(colours) if other == one]
            handle = dist.new_group(ranks, self.limit)
            if one == colour:
                part.handle, part.rank, part.size = handle, ranks.index(self.rank), len(ranks)
        return part

    def gather(self, values: Tensor) -> Tensor:
        return gather_by_sums(self, values.to(self.device)).cpu()

    def close(self) -> None:
        dist.destroy_process_group()


class _Work:
    def __init__(self, work: Pending | None) -> None:
        assert work is not None, "this rank is not of the group"
        self.work = work

    def wait(self) -> None:
        try:
            self.work.wait()
        except RuntimeError as error:
            raise lost(error) from error


def loopback_interface() -> str:
    """`lo` on Linux, `lo0` on macOS."""
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if not names:
        raise UsageError("this machine has no loopback interface", remedy="bring it up, or train with --workers 1")
    return names[0]


def lost(error: Exception) -> WorkerError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return WorkerError(f"lost contact with the other workers ({reason})", remedy="see which one failed first")
