"""The rank of this process and the size of its group, read once from the variables that the launcher sets."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from tenor.errors import UsageError


@dataclass(frozen=True)
class World:
    """The place of one process in its group.

    All ranks must make the same choices, for example of a back end. So these choices depend on `fullest_host`, which is
    the same for every rank, and never on `local_size`.

    Attributes:
        rank: Number of this process, from 0.
        size: Processes in the group.
        local_rank: Number of this process on its host, from 0.
        local_size: Processes of the group on this host.
        host: Name of this host.
        launcher: Program or scheduler that started the process; `none` for a process on its own.
        rendezvous: Address where the ranks meet, such as `tcp://host:29500`; empty if it is not known.
        largest_local_size: `local_size` of the host with the most ranks; 0 if the launcher does not provide it.
        address: Address on which this process listens if it was given a host of its own; empty otherwise.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    host: str = "localhost"
    launcher: str = "none"
    rendezvous: str = ""
    largest_local_size: int = 0
    address: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.rank < self.size and 0 <= self.local_rank < self.local_size <= self.size):
            raise UsageError(
                f"the variables of {self.launcher} contradict each other: rank {self.rank} of {self.size}, local rank "
                f"{self.local_rank} of {self.local_size}",
                remedy="correct or unset them",
            )

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_one_host(self) -> bool:
        return self.local_size == self.size

    @property
    def fullest_host(self) -> int:
        """Number of ranks on the host with the most ranks: the same for every rank."""
        return max(self.local_size, self.largest_local_size)


DEFAULT_PORT = "29500"  # the default of torch

# launcher -> (rank, size, local rank, local size); a launcher is present if the first two variables are set
_VARIABLES = {
    "tenor": ("TENOR_RANK", "TENOR_WORLD_SIZE", "TENOR_RANK", "TENOR_WORLD_SIZE"),
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "mpirun": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
}


def detect(environ: Mapping[str, str] | None = None) -> World:
    """Read the world from the launcher's variables; without any, return the world of a single process.

    Tenor's own launcher, torchrun and mpirun start every process themselves, so their variables come first. SLURM,
    Kubeflow, SkyPilot and Kubernetes may have started torchrun or mpirun, so their variables come last.

    Args:
        environ: The environment variables; by default those of this process.

    Raises:
        UsageError: A variable is not a number, the variables contradict each other, or two launchers disagree.
    """
    environ = os.environ if environ is None else environ
    found = {name: _read(name, environ) for name in _VARIABLES if _present(name, environ)}
    ranks = {name: (world.rank, world.size) for name, world in found.items()}
    if len(set(ranks.values())) > 1:
        claims = ", ".join(f"{name} says rank {rank} of {size}" for name, (rank, size) in ranks.items())
        raise UsageError(
            f"two launchers disagree: {claims}", remedy="use one of them, or unset the variables of the other"
        )
    worlds = [*found.values(), *(world for read in _SCHEDULERS if (world := read(environ)) is not None)]
    return next(iter(worlds), World())


def _present(launcher: str, environ: Mapping[str, str]) -> bool:
    return all(name in environ for name in _VARIABLES[launcher][:2])


def _read(launcher: str, environ: Mapping[str, str]) -> World:
    names = _VARIABLES[launcher]
    rank, size = (_whole(environ, name) for name in names[:2])
    local_rank = _whole(environ, names[2], rank if launcher == "tenor" else 0)
    local_size = _whole(environ, names[3], max(1, local_rank + 1))
    address = environ.get("TENOR_ADDRESS", "") if launcher == "tenor" else ""
    meeting = _rendezvous(environ)
    return World(rank, size, local_rank, local_size, socket.gethostname(), launcher, meeting, address=address)


def _slurm(environ: Mapping[str, str]) -> World | None:
    """Read a task of a step that srun started. Variables of the step take precedence over those of the whole job."""
    if "SLURM_STEP_ID" not in environ or "SLURM_PROCID" not in environ:  # in an sbatch script, which is not a rank
        return None
    size = _whole(environ, "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environ else "SLURM_NTASKS")
    local_size, largest_local_size = _slurm_local_sizes(environ, size)
    hosts = environ.get("SLURM_STEP_NODELIST", "")
    port = str(20_000 + _whole(environ, "SLURM_JOB_ID", 0) % 10_000)
    meeting = _rendezvous(environ, first_host(hosts) if hosts else "", port)
    rank, local_rank = _whole(environ, "SLURM_PROCID"), _whole(environ, "SLURM_LOCALID", 0)
    return World(rank, size, local_rank, local_size, socket.gethostname(), "slurm", meeting, largest_local_size)


def _slurm_local_sizes(environ: Mapping[str, str], size: int) -> tuple[int, int]:
    """Return the number of this step's tasks on this host, and on the host with the most tasks.

    If SLURM lists no tasks per node, the tasks are taken to be spread evenly over the nodes.
    """
    node = _whole(environ, "SLURM_NODEID", 0)
    for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"):
        sizes = tasks_per_node(environ.get(name, ""), size)
        if sum(sizes) == size and node < len(sizes):  # otherwise the variable describes the whole job
            return sizes[node], max(sizes)
    nodes = _whole(environ, "SLURM_STEP_NUM_NODES", _whole(environ, "SLURM_NNODES", 1))
    even = min(size, _whole(environ, "SLURM_NTASKS_PER_NODE", -(-size // max(1, nodes))))
    return even, even


def tasks_per_node(text: str, most: int) -> list[int]:
    """Turn `2(x3),1` into `[2, 2, 2, 1]`. A text with more than `most` nodes gives an empty list."""
    sizes: list[int] = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if found is None:
            raise UsageError(f"cannot parse SLURM's tasks per node: {text!r}", remedy="pass --ntasks-per-node to srun")
        repeats = int(found[2] or 1)
        if len(sizes) + repeats > most:
            return []
        sizes += [int(found[1])] * repeats
    return sizes


def _kubeflow(environ: Mapping[str, str]) -> World | None:
    """Read a node of a TrainJob whose command is tenor itself, without torchrun: one worker per node."""
    if "PET_NNODES" not in environ:
        return None
    low, _, high = environ["PET_NNODES"].partition(":")
    if high not in ("", low):
        raise UsageError(
            f"PET_NNODES={environ['PET_NNODES']} is a range, which only torchrun supports",
            remedy="start the job with: torchrun -m tenor",
        )
    rank = _whole(environ, "PET_NODE_RANK", _whole(environ, "JOB_COMPLETION_INDEX", -1))
    if rank < 0:
        return None
    host, port = environ.get("PET_MASTER_ADDR", ""), environ.get("PET_MASTER_PORT", DEFAULT_PORT)
    return _node("kubeflow", rank, _whole({"PET_NNODES": low}, "PET_NNODES"), _rendezvous(environ, host, port))


def _skypilot(environ: Mapping[str, str]) -> World | None:
    """Read a node of a SkyPilot task: one worker per node."""
    if "SKYPILOT_NODE_RANK" not in environ:
        return None
    addresses = environ.get("SKYPILOT_NODE_IPS", "").split()
    size = _whole(environ, "SKYPILOT_NUM_NODES", len(addresses))
    meeting = _rendezvous(environ, addresses[0] if addresses else "")
    return _node("skypilot", _whole(environ, "SKYPILOT_NODE_RANK"), size, meeting)


def _kubernetes(environ: Mapping[str, str]) -> World | None:
    """Read a pod of an indexed Job. Kubernetes sets only the index, so the manifest has to set the other variables."""
    if "JOB_COMPLETION_INDEX" not in environ or "WORLD_SIZE" not in environ or "MASTER_ADDR" not in environ:
        return None
    rank, size = _whole(environ, "JOB_COMPLETION_INDEX"), _whole(environ, "WORLD_SIZE")
    return _node("kubernetes", rank, size, _rendezvous(environ))


def _node(launcher: str, rank: int, size: int, meeting: str) -> World | None:
    """Return the world of one process per node; None for a single node, which then starts its own workers."""
    return World(rank, size, 0, 1, socket.gethostname(), launcher, meeting) if size != 1 else None


_SCHEDULERS = (_slurm, _kubeflow, _skypilot, _kubernetes)


def _whole(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    if default is not None and name not in environ:
        return default
    try:
        return int(environ[name])
    except (KeyError, ValueError) as error:
        found = repr(environ[name]) if name in environ else "missing"
        raise UsageError(f"{name} must be a whole number, but is {found}", remedy="correct or unset it") from error


def _rendezvous(environ: Mapping[str, str], host: str = "", port: str = DEFAULT_PORT) -> str:
    """Return the address where the ranks meet: the user's choice, or the host that the launcher names."""
    if "TENOR_RENDEZVOUS" in environ:
        return environ["TENOR_RENDEZVOUS"]
    host = environ.get("MASTER_ADDR", host)
    port = environ.get("MASTER_PORT", port if "MASTER_ADDR" not in environ else DEFAULT_PORT)
    return f"tcp://{f'[{host}]' if ':' in host else host}:{port}" if host else ""


def first_host(hosts: str) -> str:
    """Return the first host of a SLURM host list: `gpu07` for `gpu[07-09,12],login1`."""
    found = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\]([^,]*))?", hosts)
    if found is None:
        raise UsageError(f"cannot parse the host list {hosts!r}", remedy="set MASTER_ADDR and MASTER_PORT")
    return "".join(part or "" for part in found.groups())
