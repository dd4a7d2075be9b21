"""Messages between processes of one machine: plain sockets on loopback, and a token that only the run's folder tells.

The server reads and writes as bytes come and go, so a worker that stands still holds up nobody. A worker that is gone,
by whatever death, shows as the end of its stream; its successor connects as it did.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import selectors
import socket
import time
from collections import deque
from pathlib import Path

from tenor.errors import WorkerError
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.messages import HELLO, PREFIX, Message, decode, frame_size

CHUNK = 1 << 20
FIRST_LIMIT = 1 << 12  # bytes of a stranger's first message
MOST_STRANGERS = 64  # connections that have not said who they are
GOODBYE_SECONDS = 10.0


class SocketChannel:
    def __init__(self, meeting: Path, limit: int) -> None:
        self.limit, self.token = limit, secrets.token_hex(32)
        self.peers: dict[int, _Peer] = {}  # by worker
        self.strangers: list[_Peer] = []
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        address = {"port": self.listener.getsockname()[1], "token": self.token}
        draft = meeting.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(address), "utf-8")
        draft.replace(meeting)

    def poll(self, seconds: float) -> list[Event]:
        found: list[Event] = []
        for key, mask in self.selector.select(seconds):
            if key.fileobj is self.listener:
                self._accept()
                continue
            peer: _Peer = key.data
            if mask & selectors.EVENT_WRITE:
                self._flush(peer)
            if mask & selectors.EVENT_READ:
                found += self._read(peer)
        return found

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:  # it is gone already
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = _Peer(connection)
        self.selector.register(connection, selectors.EVENT_READ, peer)
        self.strangers.append(peer)
        if len(self.strangers) > MOST_STRANGERS:
            self._drop(self.strangers[0])

    def _read(self, peer: _Peer) -> list[Event]:
        found: list[Event] = []
        try:
            for frame in peer.frames(FIRST_LIMIT if peer.worker is None else self.limit):
                message = decode(frame)
                if peer.worker is None:
                    found += self._welcome(peer, message)
                assert peer.worker is not None
                found.append(Event(peer.worker, message, len(frame)))
        except BlockingIOError:
            pass
        except (OSError, WorkerError):
            found += self._drop(peer)
        return found

    def _welcome(self, peer: _Peer, message: Message) -> list[Event]:
        """A worker that says who it is; one of the same number is gone, though we may not have heard of it yet."""
        told, worker = str(message.values.get("token", "")), message.values.get("worker")
        if message.kind != HELLO or not hmac.compare_digest(told.encode(), self.token.encode()):
            raise ConnectionError("a stranger")
        assert isinstance(worker, int)
        gone = self._drop(self.peers[worker]) if worker in self.peers else []
        self.strangers.remove(peer)
        peer.worker, self.peers[worker] = worker, peer
        return gone

    def _drop(self, peer: _Peer) -> list[Event]:
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(peer.socket)
        peer.socket.close()
        if peer in self.strangers:
            self.strangers.remove(peer)
        if peer.worker is None or self.peers.get(peer.worker) is not peer:
            return []
        del self.peers[peer.worker]
        return [Event(peer.worker, None)]

    def send(self, worker: int, message: Message) -> int:
        if (peer := self.peers.get(worker)) is None:
            return 0
        pieces = [memoryview(piece) for piece in message.encode()]
        peer.outgoing.extend(pieces)
        self._flush(peer)
        return sum(piece.nbytes for piece in pieces)

    def _flush(self, peer: _Peer) -> None:
        with contextlib.suppress(OSError):  # the end of its stream will tell
            peer.flush()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outgoing else 0)
        self.selector.modify(peer.socket, wanted, peer)

    def close(self) -> None:
        until = time.monotonic() + GOODBYE_SECONDS
        while self.peers and time.monotonic() < until:
            self.poll(0.1)
        for peer in [*self.peers.values(), *self.strangers]:
            self._drop(peer)
        self.selector.close()
        self.listener.close()


class _Peer:
    """One connection of the server: bytes that came and do not make a frame yet, and bytes that wait to go."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.worker: int | None = None
        self.incoming = bytearray()
        self.outgoing: deque[memoryview] = deque()

    def frames(self, limit: int) -> list[bytes]:
        """The whole frames among what came; the end of the stream is an error."""
        data = self.socket.recv(CHUNK)
        if not data:
            raise ConnectionError("closed")
        self.incoming += data
        found = []
        while len(self.incoming) >= PREFIX.size and len(self.incoming) >= (size := frame_size(self.incoming, limit)):
            found.append(bytes(self.incoming[:size]))
            del self.incoming[:size]
        return found

    def flush(self) -> None:
        try:
            while self.outgoing:
                sent = self.socket.send(self.outgoing[0])
                self.outgoing[0] = self.outgoing[0][sent:]
                if not self.outgoing[0]:
                    self.outgoing.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self.outgoing.clear()
            raise


class SocketLine:
    """A worker's connection to the server that it finds in the meeting file."""

    def __init__(self, meeting: Path, worker: int, limit: int, timeout: float) -> None:
        self.limit = limit
        address = _await_address(meeting, timeout)
        try:
            self.socket = socket.create_connection(("127.0.0.1", address["port"]), timeout)
        except OSError as error:
            raise _lost(error) from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(Message(HELLO, {"worker": worker, "token": address["token"]}))

    def send(self, message: Message) -> None:
        try:
            for piece in message.encode():
                self.socket.sendall(piece)
        except OSError as error:
            raise _lost(error) from error

    def receive(self) -> Message:
        prefix = self._exactly(PREFIX.size)
        return decode(prefix + self._exactly(frame_size(prefix, self.limit) - PREFIX.size))

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            try:
                got = self.socket.recv_into(view[at:])
            except OSError as error:
                raise _lost(error) from error
            if not got:
                raise _lost(ConnectionError("it closed the connection"))
            at += got
        return bytes(data)

    def close(self) -> None:
        self.socket.close()


def _await_address(meeting: Path, timeout: float) -> dict[str, int | str]:
    until = time.monotonic() + timeout
    while not meeting.exists():
        if time.monotonic() > until:
            raise _lost(TimeoutError("it never opened"))
        time.sleep(0.02)
    address: dict[str, int | str] = json.loads(meeting.read_text("utf-8"))
    return address


def _lost(error: OSError) -> WorkerError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return WorkerError(f"lost contact with the parameter server ({reason})", remedy="see why it failed first")
