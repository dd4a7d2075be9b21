"""The two ends of a connection between server and workers, as protocols; each transport has its own file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tenor.training.parameter_server.messages import Message


@dataclass(frozen=True)
class Event:
    """A message from a worker, or without a message: the worker is gone."""

    worker: int
    message: Message | None
    num_bytes: int = 0


class Channel(Protocol):
    """The server's end, for all workers. No method waits for a single worker."""

    def poll(self, seconds: float) -> list[Event]:
        """The events so far, after waiting at most `seconds` for one. A worker's first message is HELLO."""

    def send(self, worker: int, message: Message) -> int:
        """Send without waiting; return the number of bytes. `poll` reports a worker that is gone."""

    def drop(self, worker: int, reason: str) -> None:
        """Close the connection to a worker that sent an invalid message, and send it the reason."""

    def close(self) -> None:
        """Deliver the remaining messages to the workers that accept them within a few seconds."""


class Line(Protocol):
    """A worker's end."""

    def send(self, message: Message) -> None: ...

    def receive(self) -> Message: ...

    def close(self) -> None: ...
