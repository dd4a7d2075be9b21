"""What carries the messages: one file a transport behind these two protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tenor.training.parameter_server.messages import Message


@dataclass(frozen=True)
class Event:
    """A worker said something, or (without a message) is gone."""

    worker: int
    message: Message | None
    num_bytes: int = 0


class Channel(Protocol):
    """The server's end, to all workers. Nothing here waits for a single worker."""

    def poll(self, seconds: float) -> list[Event]:
        """What came, after waiting for it so long at most; a worker's first message is HELLO."""

    def send(self, worker: int, message: Message) -> int:
        """Send without waiting; the number of bytes. A worker that is gone is told of by `poll`."""

    def close(self) -> None:
        """Deliver what was sent, to those who take it within a few seconds."""


class Line(Protocol):
    """A worker's end."""

    def send(self, message: Message) -> None: ...

    def receive(self) -> Message: ...

    def close(self) -> None: ...
