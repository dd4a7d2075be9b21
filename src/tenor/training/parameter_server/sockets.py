"""Messages between processes of one machine: sockets on loopback, and a token in a file that only the user can read.

Workers that were given hosts of their own (see `tenor.training.launching.hosts`) use the server's address instead.

A connection begins with a greeting of fixed size: a mark, the worker's number and the token. Without the right token,
the server reads and parses nothing else and closes the connection after a few seconds. The server never blocks on a
connection, so neither an unknown client nor a stopped worker delays others. The end of a stream means that its worker
is gone; its successor connects in the same way. A worker that sends an invalid message is treated as gone.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import selectors
import socket
import struct
import time
from collections import deque
from pathlib import Path
from typing import Any

from tenor.errors import WorkerError
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.messages import END, HELLO, MARK, PREFIX, Message, decode, frame_size

LOOPBACK = "127.0.0.1"
READ_BYTES = 1 << 20
GREETING = struct.Struct("!4sI32s")  # mark, worker, token
WELCOME = MARK  # the server's answer to a greeting
MOST_UNKNOWN = 64  # connections without a valid greeting; above that, the oldest is closed
GREETING_SECONDS = 5.0  # for the greeting to arrive
ACCEPTS = 32  # new connections accepted between two polls of the others
RETRY_SECONDS = 0.05
GOODBYE_SECONDS = 10.0


class SocketChannel:
    def __init__(self, meeting: Path, num_workers: int, limit: int, host: str = LOOPBACK) -> None:
        self.num_workers, self.limit, self.token = num_workers, limit, secrets.token_bytes(32)
        self.peers: dict[int, _Peer] = {}  # by worker
        self.unknown: list[_Peer] = []
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server((host, 0))
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        address = {"host": host, "port": self.listener.getsockname()[1], "token": self.token.hex()}
        draft = meeting.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(address), "utf-8")
        draft.replace(meeting)

    def poll(self, seconds: float) -> list[Event]:
        found: list[Event] = []
        for key, mask in self.selector.select(seconds):
            if key.fileobj is self.listener:
                found += self._accept()
                continue
            peer: _Peer = key.data
            if peer.socket.fileno() < 0:  # closed while another of these events was handled
                continue
            if mask & selectors.EVENT_WRITE:
                self._flush(peer)
            if mask & selectors.EVENT_READ:
                found += self._read(peer)
        while self.unknown and time.monotonic() - self.unknown[0].since > GREETING_SECONDS:
            self._drop(self.unknown[0])
        return found

    def _accept(self) -> list[Event]:
        found: list[Event] = []
        for _ in range(ACCEPTS):
            try:
                connection, _ = self.listener.accept()
            except OSError:  # no more connections wait
                break
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = _Peer(connection)
            self.selector.register(connection, selectors.EVENT_READ, peer)
            self.unknown.append(peer)
            found += self._read(peer)  # a worker's greeting has usually arrived by now
            if len(self.unknown) > MOST_UNKNOWN:
                self._drop(self.unknown[0])
        return found

    def _read(self, peer: _Peer) -> list[Event]:
        found: list[Event] = []
        try:
            if peer.worker is None:
                return self._greet(peer)
            for frame in peer.frames(self.limit):
                found.append(Event(peer.worker, decode(frame), len(frame)))
        except BlockingIOError:
            pass
        except WorkerError as error:
            assert peer.worker is not None
            self.send(peer.worker, Message(END, {"failed": error.what}))
            found += self._drop(peer)
        except OSError:
            found += self._drop(peer)
        return found

    def _greet(self, peer: _Peer) -> list[Event]:
        """Read a greeting. If its token is right, an earlier worker of the same number is gone."""
        if not peer.receive(GREETING.size):
            return []
        mark, worker, token = GREETING.unpack(peer.incoming)
        if not hmac.compare_digest(token, self.token) or mark != MARK or worker >= self.num_workers:
            raise ConnectionError("no valid greeting")
        gone = self._drop(self.peers[worker]) if worker in self.peers else []
        self.unknown.remove(peer)
        peer.incoming.clear()
        peer.worker, self.peers[worker] = worker, peer
        peer.outgoing.append(memoryview(WELCOME))
        self._flush(peer)
        return [*gone, Event(worker, Message(HELLO), GREETING.size)]

    def drop(self, worker: int, reason: str) -> None:
        if (peer := self.peers.get(worker)) is not None:
            self.send(worker, Message(END, {"failed": reason}))
            self._drop(peer)

    def _drop(self, peer: _Peer) -> list[Event]:
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(peer.socket)
        peer.socket.close()
        if peer in self.unknown:
            self.unknown.remove(peer)
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
        with contextlib.suppress(OSError):  # the end of the stream will show it
            peer.flush()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outgoing else 0)
        self.selector.modify(peer.socket, wanted, peer)

    def close(self, patience: float = GOODBYE_SECONDS) -> None:
        until = time.monotonic() + patience
        while self.peers and time.monotonic() < until:
            self.poll(0.1)
        for peer in [*self.peers.values(), *self.unknown]:
            self._drop(peer)
        self.selector.close()
        self.listener.close()


class _Peer:
    """A connection of the server: received bytes that are not a whole frame yet, and bytes that wait to be sent."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.since = time.monotonic()
        self.worker: int | None = None  # known after a valid greeting
        self.incoming = bytearray()
        self.outgoing: deque[memoryview] = deque()

    def receive(self, size: int) -> bool:
        """Receive until `size` bytes are there in all; return whether they are. The end of the stream is an error."""
        data = self.socket.recv(size - len(self.incoming))
        if not data:
            raise ConnectionError("closed")
        self.incoming += data
        return len(self.incoming) == size

    def frames(self, limit: int) -> list[bytes]:
        """The whole frames among the received bytes."""
        self.receive(len(self.incoming) + READ_BYTES)
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
    """A worker's connection to the server, whose address is in the meeting file."""

    def __init__(self, meeting: Path, worker: int, limit: int, timeout: float) -> None:
        self.limit, self.timeout, self.is_welcome = limit, timeout, False
        address = _await_address(meeting, timeout)
        self.address = (address.get("host", LOOPBACK), address["port"])
        self.greeting = GREETING.pack(MARK, worker, bytes.fromhex(str(address["token"])))
        self.socket = self._connect()

    def _connect(self) -> socket.socket:
        try:
            connection = socket.create_connection(self.address, self.timeout)
        except OSError as error:
            raise _lost(error) from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # the missing answer will show it
            connection.sendall(self.greeting)
        return connection

    def _await_welcome(self) -> None:
        """Connect again until the server answers: if too many others connect, it may have closed this connection."""
        until = time.monotonic() + self.timeout
        while True:
            try:
                self.is_welcome = self._exactly(len(WELCOME)) == WELCOME
                return
            except WorkerError:
                if time.monotonic() > until:
                    raise
            self.socket.close()
            time.sleep(RETRY_SECONDS)
            self.socket = self._connect()

    def send(self, message: Message) -> None:
        try:
            for piece in message.encode():
                self.socket.sendall(piece)
        except OSError as error:
            raise _lost(error) from error

    def receive(self) -> Message:
        if not self.is_welcome:
            self._await_welcome()
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
                raise _lost(ConnectionError("the server closed the connection"))
            at += got
        return bytes(data)

    def close(self) -> None:
        self.socket.close()


def _await_address(meeting: Path, timeout: float) -> dict[str, Any]:
    until = time.monotonic() + timeout
    while not meeting.exists():
        if time.monotonic() > until:
            raise _lost(TimeoutError(f"it did not start within {timeout:g} s"))
        time.sleep(0.02)
    address: dict[str, Any] = json.loads(meeting.read_text("utf-8"))
    return address


def _lost(error: OSError) -> WorkerError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return WorkerError(f"lost contact with the parameter server ({reason})", remedy="see the message of the server")
