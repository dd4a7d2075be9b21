"""The choice of a worker's device and of the back end that carries the messages."""

from __future__ import annotations

import torch

from tenor.errors import UsageError
from tenor.groups.alone import Alone
from tenor.groups.base import Group
from tenor.groups.collective import CollectiveGroup
from tenor.groups.memory import MemoryGroup, can_share_memory
from tenor.groups.mpi import MpiGroup
from tenor.world import World


def choose_device(name: str, world: World) -> torch.device:
    """The device of this rank. `auto` is its own GPU if every host has a GPU for each of its ranks, otherwise the CPU.

    This host compares its GPUs with the largest number of ranks on any host. If hosts have different numbers of GPUs,
    `--device` must name the device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.device_count() >= world.fullest_host else "cpu"
    if name == "cuda":
        if torch.cuda.device_count() <= world.local_rank:
            remedy = "use --device cpu, or fewer workers on this host"
            raise UsageError(f"this host has no GPU for local rank {world.local_rank}", remedy=remedy)
        torch.cuda.set_device(world.local_rank)
        return torch.device("cuda", world.local_rank)
    return torch.device("cpu")


def choose_backend(name: str, world: World, device: torch.device) -> str:
    """The back end for the messages.

    `auto` is NCCL between GPUs, shared memory between local workers, MPI if mpirun started the workers without
    MASTER_ADDR, and gloo otherwise.
    """
    if name == "auto":
        if device.type == "cuda":
            return "nccl"
        if can_share_memory(world):
            return "memory"
        return "mpi" if world.launcher == "mpirun" and not world.rendezvous else "gloo"
    if name == "mpi" and world.launcher not in ("mpirun", "slurm"):
        remedy = "start with: mpirun -n 4 tenor train … --backend mpi"
        raise UsageError("--backend mpi needs workers that mpirun or srun started", remedy=remedy)
    if name == "nccl" and device.type != "cuda":
        raise UsageError("--backend nccl needs a GPU", remedy="use --backend gloo")
    if name in ("mpi", "memory") and device.type != "cpu":
        raise UsageError(f"--backend {name} works on CPUs only", remedy="add --device cpu")
    if name == "memory" and world.size > 1 and not can_share_memory(world):
        raise UsageError("--backend memory needs local --workers on x86 Linux", remedy="use --backend gloo")
    return name


def join(world: World, backend: str, timeout: float) -> Group:
    """Connect to the other processes of this world."""
    if world.size == 1:
        return Alone()
    if backend == "mpi":
        return MpiGroup(world)
    if not world.rendezvous:
        remedy = "set MASTER_ADDR and MASTER_PORT to the first host's address and a free port"
        raise UsageError(f"{world.launcher} gives no address at which the workers can meet", remedy=remedy)
    return MemoryGroup(world, timeout) if backend == "memory" else CollectiveGroup(world, backend, timeout)
