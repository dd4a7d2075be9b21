"""A group over MPI, for processes that mpirun or srun started. It sends buffers with mpi4py and pickles nothing."""

from __future__ import annotations

import atexit
import copy
import os
import sys
from typing import Any

from torch import Tensor

from tenor.errors import MissingExtra, UsageError
from tenor.groups.base import Pending, gather_by_sums
from tenor.world import World


class MpiGroup:
    """Under MPI, the loss of a rank ends the whole run. mpirun names the rank, and `--resume` continues."""

    def __init__(self, world: World) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise MissingExtra("--backend mpi", "mpi") from error
        self.mpi: Any = MPI
        self.communicator: Any = MPI.COMM_WORLD
        self.rank, self.size = world.rank, world.size
        if (self.communicator.rank, self.communicator.size) != (self.rank, self.size):
            raise UsageError(
                f"MPI reports rank {self.communicator.rank} of {self.communicator.size}, {world.launcher} reports "
                f"rank {self.rank} of {self.size}",
                remedy="start with the mpirun of the MPI that mpi4py was built for",
            )

    def start_sum(self, tensor: Tensor) -> Pending:
        if tensor.is_floating_point() and tensor.element_size() < 4:
            raise UsageError("MPI cannot add 16-bit numbers", remedy="use --compress top-k, or --backend gloo")
        return _Request(self.communicator.Iallreduce(self.mpi.IN_PLACE, tensor.numpy()), tensor)

    def gather(self, values: Tensor) -> Tensor:
        return gather_by_sums(self, values)

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        return _Request(self.communicator.Isend(tensor.numpy(), to, tag), tensor)

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending:
        return _Request(self.communicator.Irecv(tensor.numpy(), source, tag), tensor)

    def split(self, colour: int) -> MpiGroup:
        part = copy.copy(self)
        part.communicator = self.communicator.Split(colour, self.rank)
        part.rank, part.size = part.communicator.rank, part.communicator.size
        return part

    def close(self) -> None:
        self.communicator.Barrier()

    def abandon(self, exit_code: int) -> None:
        """MPI would wait for the other ranks at the end of the process, for ever. Without it, mpirun ends them."""
        atexit.register(_end_now, exit_code)


def _end_now(exit_code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


class _Request:
    def __init__(self, request: Any, tensor: Tensor) -> None:
        self.request = request
        self.tensor = tensor  # must live until MPI has finished with it

    def wait(self) -> None:
        self.request.Wait()
