"""Which device a worker computes on, and what carries the workers' messages."""

from __future__ import annotations

import torch

from tenor.errors import UsageError
from tenor.training.groups.alone import Alone
from tenor.training.groups.base import Group
from tenor.training.groups.collective import CollectiveGroup
from tenor.training.groups.memory import MemoryGroup, can_share_memory
from tenor.training.groups.mpi import MpiGroup
from tenor.world import World


def choose_device(name: str, world: World) -> torch.device:
    """`auto` takes this rank's GPU where there is one for every rank of the host, the processor otherwise."""
    if name == "auto":
        name = "cuda" if torch.cuda.device_count() >= world.local_size else "cpu"
    if name == "cuda":
        if torch.cuda.device_count() <= world.local_rank:
            remedy = "use --device cpu, or fewer workers on this host"
            raise UsageError(f"no GPU for local rank {world.local_rank}", remedy=remedy)
        torch.cuda.set_device(world.local_rank)
        return torch.device("cuda", world.local_rank)
    return torch.device("cpu")


def choose_backend(name: str, world: World, device: torch.device) -> str:
    """`auto`: NCCL between GPUs; shared memory between local workers; MPI where mpirun started us without a meeting
    place; gloo otherwise."""
    if name == "auto":
        if device.type == "cuda":
            return "nccl"
        if can_share_memory(world):
            return "memory"
        return "mpi" if world.launcher == "mpirun" and not world.rendezvous else "gloo"
    if name == "mpi" and world.launcher not in ("mpirun", "slurm"):
        raise UsageError("--backend mpi outside mpirun", remedy="start with: mpirun -n 4 tenor train … --backend mpi")
    if name == "nccl" and device.type != "cuda":
        raise UsageError("--backend nccl without a GPU", remedy="use --backend gloo")
    if name in ("mpi", "memory") and device.type != "cpu":
        raise UsageError(f"--backend {name} computes on processors only", remedy="add --device cpu")
    if name == "memory" and world.size > 1 and not can_share_memory(world):
        raise UsageError("--backend memory is for --workers of one x86 Linux machine", remedy="use --backend gloo")
    return name


def join(world: World, backend: str, timeout: float) -> Group:
    """The group of this world."""
    if world.size == 1:
        return Alone()
    if backend == "mpi":
        return MpiGroup(world)
    if not world.rendezvous:
        remedy = "set MASTER_ADDR and MASTER_PORT to the first host's address and a free port"
        raise UsageError(f"{world.launcher} does not say where its workers meet", remedy=remedy)
    return MemoryGroup(world, timeout) if backend == "memory" else CollectiveGroup(world, backend, timeout)
