"""`tenor.serving.server.serve`: binds, loads the model, serves until a signal, and drains.

A stop goes in this order, so that no accepted request is lost:

1. /readyz answers 503; connections and requests are still accepted for a quarter of the drain time.
2. The listener closes, and connections that the system had accepted already are taken over.
3. Every answer closes its connection. Connections without a request are closed after a short silence.
4. What is not done when the drain time is over is answered with 503.
5. The model's process and the threads end; a model that does not answer is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn

from tenor.errors import Stopped, UsageError
from tenor.serving.app import Service, build_app
from tenor.serving.connections import ConnectionLimits, GuardedConnection, guarded_by
from tenor.serving.reload import CurrentModel
from tenor.serving.settings import ServeSettings
from tenor.serving.token import read_token

log = logging.getLogger("tenor.serving")
BACKLOG = 2048
_ACCEPTING_SHARE = 0.25  # of the drain time
_CLOSING_SECONDS = 0.5  # of the drain time are left for connections to close
_SILENCE = 0.5  # seconds after which a connection without a request is closed while draining


def serve(run: Path, settings: ServeSettings, on_ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve a run folder until SIGTERM or SIGINT.

    Args:
        run: A folder made by `tenor train`, or a link to one.
        settings: Where to listen, and what to accept.
        on_ready: Called with the address once requests are accepted.

    Raises:
        UsageError: The address cannot be used, or it needs a token.
        RunError: The run folder cannot be used.
        Stopped: A signal has stopped the service, after all accepted requests were answered.
    """
    token = read_token(settings, os.environ)
    with bind(settings) as listener:
        service = Service(CurrentModel(run, settings.threads), settings)
        server = DrainingServer(service, token, listener, on_ready)
        try:
            server.run([listener])
        finally:
            service.current.model.close(0.0)  # it is still there after a second signal
    if server.stopped_by:
        lost = service.num_given_up
        done = f"{lost} requests were not done in time" if lost else "all accepted requests were answered"
        raise Stopped(server.stopped_by, done)


def bind(settings: ServeSettings) -> socket.socket:
    """A socket with the address of the settings; it does not listen yet.

    Raises:
        UsageError: The address is not available.
    """
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"--host {settings.host} is not an address: {error}", remedy="give an IP address") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        where = f"--host {settings.host} --port {settings.port}"
        raise UsageError(
            f"cannot listen on {where}: {error.strerror}", remedy="choose another port or address"
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class DrainingServer(uvicorn.Server):
    """uvicorn's server with limits on connections, and a stop that answers everything it has accepted."""

    def __init__(
        self, service: Service, token: str | None, listener: socket.socket, on_ready: Callable[[str], None]
    ) -> None:
        settings = service.settings
        self._service, self._on_ready, self._listener = service, on_ready, listener
        self._limits = ConnectionLimits(settings.header_seconds, settings.request_seconds, settings.max_connections)
        self._connection_class = guarded_by(self._limits)
        self.stopped_by = 0  # the signal
        self._end = math.inf  # of the drain time, by the clock of the event loop
        super().__init__(
            uvicorn.Config(
                build_app(service, token),
                http=self._connection_class,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,  # no request, and so no token, is ever logged
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=settings.idle_seconds,  # type: ignore[arg-type]  # any number of seconds
            )
        )
        raise_file_limit(settings.max_connections)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready(address_of(self._listener))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop at the first signal; leave at once at the second."""
        if self.stopped_by:
            self.should_exit = self.force_exit = True
            return
        self.stopped_by = sig
        self._service.stop_being_ready()
        loop, seconds = asyncio.get_running_loop(), self._service.settings.drain_seconds
        self._end = loop.time() + seconds
        loop.call_soon_threadsafe(self._stop_later, seconds * _ACCEPTING_SHARE if sig == signal.SIGTERM else 0.0)

    def _stop_later(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, setattr, self, "should_exit", True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stop_being_ready()
        self._service.is_closing = True
        self._end = min(self._end, asyncio.get_running_loop().time() + self._service.settings.drain_seconds)
        with self._listener.dup() as backlog:  # keeps the queue of the system alive for a moment
            for server in self.servers:
                server.close()
            await asyncio.sleep(0)  # the event loop closes its own sockets
            accepted = accept_all(backlog)
        for one in accepted:
            await asyncio.get_running_loop().connect_accepted_socket(self._new_connection, one)
        await self._until_silent()
        left = self._end - asyncio.get_running_loop().time()
        self.config.timeout_graceful_shutdown = max(_CLOSING_SECONDS, left)  # type: ignore[assignment]
        await super().shutdown(sockets)
        if self.force_exit:  # uvicorn leaves requests and the application as they are
            for task in self.server_state.tasks:
                task.cancel()
            await self.lifespan.shutdown()

    def _new_connection(self) -> GuardedConnection:
        return self._connection_class(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def _until_silent(self) -> None:
        """Wait until no connection has a request or has been active a moment ago."""
        loop = asyncio.get_running_loop()
        while (
            loop.time() < self._end - _CLOSING_SECONDS
            and not self.force_exit
            and any(map(self._is_active, self.server_state.connections))
        ):
            await asyncio.sleep(0.02)

    def _is_active(self, connection: object) -> bool:
        if not isinstance(connection, GuardedConnection):
            return False
        has_request = connection.cycle is not None and not connection.cycle.response_complete
        return has_request or asyncio.get_running_loop().time() - connection.last_active < _SILENCE


def accept_all(backlog: socket.socket) -> list[socket.socket]:
    """Accept the connections that the system has accepted already.

    Nothing is answered meanwhile: clients that connect again after each answer would otherwise never come to an end.
    """
    backlog.setblocking(False)
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):  # BlockingIOError: there are no more
        while len(found) <= BACKLOG:
            found.append(backlog.accept()[0])
            found[-1].setblocking(False)
    return found


def raise_file_limit(connections: int) -> None:
    """Ask the system for a file descriptor per connection; it grants what it allows."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
