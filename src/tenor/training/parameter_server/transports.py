"""The choice of transport: sockets on loopback for local workers, MPI for workers that mpirun started."""

from __future__ import annotations

from pathlib import Path

from tenor.errors import UsageError
from tenor.training.parameter_server.channels import Channel, Line
from tenor.training.parameter_server.mpi import MpiChannel, MpiLine
from tenor.training.parameter_server.sockets import LOOPBACK, SocketChannel, SocketLine
from tenor.world import World


def open_channel(world: World, backend: str, limit: int) -> Channel:
    """The server's end. No message may be longer than `limit` bytes."""
    if backend == "mpi":
        return MpiChannel(world, limit)
    return SocketChannel(_meeting(world, backend), world.size - 1, limit, world.address or LOOPBACK)


def open_line(world: World, backend: str, limit: int, timeout: float) -> Line:
    """A worker's end. A server that does not answer within `timeout` seconds counts as lost."""
    if backend == "mpi":
        return MpiLine(world, limit, timeout)
    return SocketLine(_meeting(world, backend), world.rank - 1, limit, timeout)


def _meeting(world: World, backend: str) -> Path:
    """The file with the server's address, in the launcher's temporary folder, which is removed when the run ends."""
    if not world.rendezvous.startswith("file://"):
        remedy = "use --workers on one machine without a launcher, or mpirun with --backend mpi"
        raise UsageError(f"--strategy async cannot use --backend {backend} under {world.launcher}", remedy=remedy)
    return Path(world.rendezvous.removeprefix("file://")).with_name("server.json")
