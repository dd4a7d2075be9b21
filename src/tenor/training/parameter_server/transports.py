"""Which transport a run's messages take: sockets on loopback for local workers, MPI for those that mpirun started."""

from __future__ import annotations

from pathlib import Path

from tenor.errors import UsageError
from tenor.training.parameter_server.channels import Channel, Line
from tenor.training.parameter_server.mpi import MpiChannel, MpiLine
from tenor.training.parameter_server.sockets import SocketChannel, SocketLine
from tenor.world import World


def open_channel(world: World, backend: str, limit: int) -> Channel:
    """The server's end; no message may be longer than the limit."""
    return MpiChannel(world, limit) if backend == "mpi" else SocketChannel(_meeting(world, backend), limit)


def open_line(world: World, backend: str, limit: int, timeout: float) -> Line:
    """A worker's end; a server that is silent for longer than the time-out counts as lost."""
    if backend == "mpi":
        return MpiLine(world, limit, timeout)
    return SocketLine(_meeting(world, backend), world.rank - 1, limit, timeout)


def _meeting(world: World, backend: str) -> Path:
    """A file beside the local launcher's meeting place, in a folder that goes when the run ends."""
    if not world.rendezvous.startswith("file://"):
        remedy = "use --workers on one machine without a launcher, or mpirun with --backend mpi"
        raise UsageError(f"--strategy async over {backend} under {world.launcher}", remedy=remedy)
    return Path(world.rendezvous.removeprefix("file://")).with_name("server.json")
