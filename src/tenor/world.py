"""Who this process is among its peers: a value, read once from the launcher's variables."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from tenor.errors import UsageError


@dataclass(frozen=True)
class World:
    """`rank` of `size` processes, `local_rank` of `local_size` on this host; `rendezvous` is where they meet."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    host: str = "localhost"
    launcher: str = "none"
    rendezvous: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.rank < self.size and 0 <= self.local_rank < self.local_size <= self.size):
            raise UsageError(
                f"{self.launcher} says rank {self.rank} of {self.size}, local rank {self.local_rank} of "
                f"{self.local_size}, which cannot be",
                remedy="correct or unset the launcher's variables",
            )

    @property
    def is_first(self) -> bool:
        return self.rank == 0


# launcher -> (rank, size, local rank, local size); a launcher is recognised by its first two
_VARIABLES = {
    "tenor": ("TENOR_RANK", "TENOR_WORLD_SIZE", "TENOR_RANK", "TENOR_WORLD_SIZE"),
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "mpirun": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
}


def detect(environ: Mapping[str, str] | None = None) -> World:
    """Read the world from the variables of our own launcher, torchrun, mpirun or SLURM; alone if there are none.

    SLURM may have started torchrun or mpirun, so it is asked last. Two others that disagree are refused.
    """
    environ = os.environ if environ is None else environ
    found = {name: _read(name, environ) for name in _VARIABLES if _present(name, environ)}
    ranks = {name: (world.rank, world.size) for name, world in found.items() if name != "slurm"}
    if len(set(ranks.values())) > 1:
        told = ", ".join(f"{name} says rank {rank} of {size}" for name, (rank, size) in ranks.items())
        raise UsageError(
            f"two launchers disagree: {told}", remedy="start with one of them, or unset the other's variables"
        )
    return next(iter(found.values()), World())


def _present(launcher: str, environ: Mapping[str, str]) -> bool:
    if launcher == "slurm" and "SLURM_STEP_ID" not in environ:  # inside sbatch, but not started by srun
        return False
    return all(name in environ for name in _VARIABLES[launcher][:2])


def _read(launcher: str, environ: Mapping[str, str]) -> World:
    names = _VARIABLES[launcher]
    try:
        rank, size = (int(environ[name]) for name in names[:2])
        local_rank = int(environ.get(names[2], rank if launcher == "tenor" else 0))
        local_size = int(environ.get(names[3], max(1, local_rank + 1)))
    except ValueError as error:
        raise UsageError(f"{launcher} left a variable that is no number: {error}", remedy="unset it") from error
    return World(rank, size, local_rank, local_size, socket.gethostname(), launcher, _rendezvous(launcher, environ))


def _rendezvous(launcher: str, environ: Mapping[str, str]) -> str:
    """Where the ranks meet; under SLURM the first host of the step, at a port that the job's number chooses."""
    if "TENOR_RENDEZVOUS" in environ:
        return environ["TENOR_RENDEZVOUS"]
    if "MASTER_ADDR" in environ:
        return f"tcp://{environ['MASTER_ADDR']}:{environ.get('MASTER_PORT', '29500')}"
    hosts = environ.get("SLURM_STEP_NODELIST", "")
    if launcher == "slurm" and hosts:
        return f"tcp://{first_host(hosts)}:{20_000 + int(environ.get('SLURM_JOB_ID', '0')) % 10_000}"
    return ""


def first_host(hosts: str) -> str:
    """`gpu[07-09,12],login1` → `gpu07`."""
    found = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\]([^,]*))?", hosts)
    if found is None:
        raise UsageError(f"cannot read the host list {hosts!r}", remedy="set MASTER_ADDR and MASTER_PORT")
    return "".join(part or "" for part in found.groups())
