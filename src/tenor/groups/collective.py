"""A group over torch.distributed: gloo between CPUs, NCCL between GPUs."""

from __future__ import annotations

import copy
import os
from datetime import timedelta
from typing import Any, Self

import torch
from torch import Tensor
from torch import distributed as dist

from tenor.errors import WorkerError
from tenor.groups.base import Pending, gather_by_sums
from tenor.groups.meeting import choose_interface, open_store
from tenor.world import World


class CollectiveGroup:
    """Processes that meet at the world's rendezvous: for local workers a file, and traffic on loopback only."""

    def __init__(self, world: World, backend: str, timeout: float) -> None:
        self.rank, self.size = world.rank, world.size
        self.device = torch.device("cuda" if backend == "nccl" else "cpu")
        self.limit = timedelta(seconds=timeout)
        self.handle: dist.ProcessGroup | None = None  # None: all processes
        choose_interface(world)
        try:
            where = _where_to_meet(world, backend, self.limit)
            dist.init_process_group(backend, timeout=self.limit, world_size=world.size, rank=world.rank, **where)
        except (RuntimeError, ValueError) as error:
            raise lost(error) from error

    def start_sum(self, tensor: Tensor) -> Pending:
        try:
            return _CollectiveMessage(dist.all_reduce(tensor, group=self.handle, async_op=True))
        except RuntimeError as error:
            raise lost(error) from error

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        try:
            return _CollectiveMessage(dist.isend(tensor, group=self.handle, tag=tag, group_dst=to))
        except RuntimeError as error:
            raise lost(error) from error

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending:
        try:
            return _CollectiveMessage(dist.irecv(tensor, group=self.handle, tag=tag, group_src=source))
        except RuntimeError as error:
            raise lost(error) from error

    def split(self, colour: int) -> Self:
        part = copy.copy(self)
        colours = self.gather(torch.tensor([colour])).tolist()
        for one in sorted(set(colours)):  # torch requires every rank to create every group
            ranks = [rank for rank, other in enumerate(colours) if other == one]
            handle = dist.new_group(ranks, self.limit)
            if one == colour:
                part.handle, part.rank, part.size = handle, ranks.index(self.rank), len(ranks)
        return part

    def gather(self, values: Tensor) -> Tensor:
        return gather_by_sums(self, values.to(self.device)).cpu()

    def close(self) -> None:
        dist.destroy_process_group()

    def abandon(self, exit_code: int) -> None:
        """Nothing to do: the connections end with the process."""


class _CollectiveMessage:
    def __init__(self, work: Pending | None) -> None:
        assert work is not None, "this rank is not in the group"
        self.work = work

    def wait(self) -> None:
        try:
            self.work.wait()
        except RuntimeError as error:
            raise lost(error) from error


def _where_to_meet(world: World, backend: str, limit: timedelta) -> dict[str, Any]:
    if world.rendezvous.startswith("file://"):
        return {"init_method": world.rendezvous}
    if world.launcher == "torchrun" and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return {"init_method": "env://"}  # torchrun's agent already serves the store
    return {"store": open_store(world, backend, limit)}


def lost(error: Exception) -> WorkerError:
    """The error of a worker that no longer reaches the others."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return WorkerError(f"lost contact with the other workers ({reason})", remedy="see which worker failed first")
