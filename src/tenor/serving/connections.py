"""HTTP connections that cannot be held open for nothing: time for the head of a request, and its size, are limited.

uvicorn limits how long a connection may be idle after an answer, but not how long a client may take to send the head
of a request or to read an answer. Here a timer runs whenever a connection waits for the end of a head, or for a client
that does not read. If there are too many connections, those that have waited longest are closed, so new clients always
get in.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 32 << 10  # bytes
MOST_PIPELINED = 32


class ConnectionLimits:
    """Shared by all connections of a service.

    Args:
        header_seconds: Time for the head of a request.
        read_seconds: Time for a client to read what it was sent.
        most: Number of connections.
    """

    def __init__(self, header_seconds: float, read_seconds: float, most: int) -> None:
        self.header_seconds, self.read_seconds, self.most = header_seconds, read_seconds, most
        self.waiting: dict[GuardedConnection, None] = {}  # for a request, those that have waited longest first


class GuardedConnection(HttpToolsProtocol):
    """A connection with the limits of the class attribute `limits`; `guarded_by` makes a class with its own."""

    limits: ConnectionLimits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None  # for the end of a head
        self._read_timer: asyncio.TimerHandle | None = None  # for a client that does not read
        self._is_in_head, self._head_bytes = False, 0
        self.last_active = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        self.limits.waiting[self] = None
        if len(self.connections) > self.limits.most:
            next(iter(self.limits.waiting)).close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_read_timer()
        self.limits.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self.last_active = self.loop.time()
        if self._is_between_requests() and self._timer is None:
            self._await_head()
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if self._is_in_head else 0
        if self._head_bytes > LARGEST_HEAD:
            self.send_400_response("The head of the request is too large.")
        elif len(self.pipeline) > MOST_PIPELINED:
            self.close()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._stop_timer()
        self.limits.waiting.pop(self, None)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self.last_active = self.loop.time()
        super().on_response_complete()
        if self._is_between_requests() and not self.transport.is_closing():
            self.limits.waiting[self] = None

    def pause_writing(self) -> None:
        self._await_reader()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop_read_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, whatever it waits for, once the client has read what it was sent, or too late."""
        self.limits.waiting.pop(self, None)
        self._await_reader()
        self.transport.close()

    def _await_reader(self) -> None:
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(self.limits.read_seconds, self.transport.abort)

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _is_between_requests(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_seconds, self.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def guarded_by(limits: ConnectionLimits) -> type[GuardedConnection]:
    """A class of connections with these limits."""
    return type("GuardedConnection", (GuardedConnection,), {"limits": limits})
