"""Messages over MPI, for processes that mpirun or srun started. Rank 0 serves; buffers are sent, nothing is pickled.

MPI waits by spinning. With more processes than cores this slows down the workers, so both ends poll and sleep instead.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tenor.errors import WorkerError
from tenor.groups.mpi import MpiGroup
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.messages import END, HELLO, Message, decode
from tenor.world import World

TAG = 41
NAP_SECONDS = 1e-4
GOODBYE_SECONDS = 60.0


class _Mail:
    """Sends and receives whole frames as bytes, for both ends. An empty frame means goodbye."""

    def __init__(self, world: World, limit: int) -> None:
        group = MpiGroup(world)
        self.mpi, self.communicator, self.limit = group.mpi, group.communicator, limit
        self.sent: list[tuple[Any, bytes]] = []  # requests under way, with their bytes, which must live until then

    def post(self, rank: int, frame: bytes) -> None:
        self.sent = [(request, kept) for request, kept in self.sent if not request.Test()]
        self.sent.append((self.communicator.Isend([frame, self.mpi.BYTE], rank, TAG), frame))

    def take(self, source: int | None = None) -> tuple[int, bytes] | None:
        """(rank, frame) of a message that has arrived, from one rank or from any; None if there is none."""
        status = self.mpi.Status()
        matched = self.communicator.Improbe(self.mpi.ANY_SOURCE if source is None else source, TAG, status)
        if matched is None:
            return None
        count = status.Get_count(self.mpi.BYTE)
        if count > self.limit:
            remedy = "run the same version of Tenor on all hosts"
            raise WorkerError(f"a message of {count:,} bytes is too long", remedy=remedy)
        data = np.empty(count, np.uint8)
        matched.Recv([data, self.mpi.BYTE])
        return status.Get_source(), data.tobytes()


class MpiChannel:
    def __init__(self, world: World, limit: int) -> None:
        self.mail = _Mail(world, limit)
        self.present = set(range(1, world.size))  # ranks that have not sent goodbye

    def poll(self, seconds: float) -> list[Event]:
        until, found = time.monotonic() + seconds, []
        while True:
            taken = self.mail.take()
            if taken is not None:
                rank, frame = taken
                if frame:
                    found.append(self._event(rank - 1, frame))
                else:
                    self.present.discard(rank)
                    found.append(Event(rank - 1, None))
            elif found or time.monotonic() > until:
                return found
            else:
                time.sleep(NAP_SECONDS)

    def _event(self, worker: int, frame: bytes) -> Event:
        try:
            return Event(worker, decode(frame), len(frame))
        except WorkerError as error:
            self.drop(worker, error.what)
            return Event(worker, None)

    def drop(self, worker: int, reason: str) -> None:
        """Send the worker the reason; it then sends goodbye, as at the end of a run."""
        self.send(worker, Message(END, {"failed": reason}))

    def send(self, worker: int, message: Message) -> int:
        if worker + 1 not in self.present:
            return 0
        frame = b"".join(message.encode())
        self.mail.post(worker + 1, frame)
        return len(frame)

    def close(self) -> None:
        """Wait for all goodbyes. Later messages from a rank that has left may belong to its next run."""
        until = time.monotonic() + GOODBYE_SECONDS
        while self.present and time.monotonic() < until:
            found = [self.mail.take(rank) for rank in self.present]
            self.present -= {taken[0] for taken in found if taken and not taken[1]}
            time.sleep(NAP_SECONDS)


class MpiLine:
    def __init__(self, world: World, limit: int, timeout: float) -> None:
        self.mail, self.timeout = _Mail(world, limit), timeout
        self.send(Message(HELLO))

    def send(self, message: Message) -> None:
        self.mail.post(0, b"".join(message.encode()))

    def receive(self) -> Message:
        until = time.monotonic() + self.timeout
        while (taken := self.mail.take()) is None:
            if time.monotonic() > until:
                what = f"lost contact with the parameter server (no answer in {self.timeout:g} s)"
                raise WorkerError(what, remedy="see the message of the server")
            time.sleep(NAP_SECONDS)
        return decode(taken[1])

    def close(self) -> None:
        self.mail.post(0, b"")
        for request, _ in self.mail.sent:
            request.Wait()
