"""Reads the body of a request before the service sees it: up to a size, within a time, decompressed.

A pure ASGI middleware. Sizes are counted as bytes arrive, so neither a missing Content-Length nor a small compressed
body can make the service hold more than the limit.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tenor.serving.replies import BadRequest, refuse

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_GZIP = 16 + zlib.MAX_WBITS
_DISCARDED = 4  # so many times the limit is read and discarded, for clients that read only after sending everything
_HELD = 64  # so many bodies of the maximum size are held at the same time


@dataclass(frozen=True)
class BodyLimits:
    """The largest body in bytes, and the longest time to send it in seconds."""

    size: int
    seconds: float


class Gone(Exception):
    """The client has closed the connection before its request was complete."""


class LimitBodies:
    """Passes a request on with its whole body as one message; refuses bodies that are too large, slow or damaged."""

    def __init__(self, app: AsgiApp, limits: BodyLimits) -> None:
        self.app, self.limits = app, limits
        self.held = 0  # bytes of bodies that are in memory now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope):
            await self.app(scope, receive, send)
            return
        reader = _Reader(self, scope, receive)
        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await reader.read()
        except Gone:
            return
        except TimeoutError:
            late = f"the body did not arrive within {self.limits.seconds:g} s; send it faster"
            await refuse(send, BadRequest(408, late))
            return
        except BadRequest as error:
            await reader.discard()
            await refuse(send, error)
            return
        finally:
            self.held -= reader.size
        await self.app(scope, _replay(body, receive), send)


class _Reader:
    """Reads one body."""

    def __init__(self, owner: LimitBodies, scope: Scope, receive: Receive) -> None:
        self._owner, self._receive = owner, receive
        self._headers = dict(scope["headers"])
        self._most = owner.limits.size
        self._is_complete = False
        self.size = 0  # bytes received

    async def read(self) -> bytes:
        declared = self._headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared[:20]) > self._most:
            raise self._too_large()
        unpack = self._unpacker()
        parts, total = [], 0
        while not self._is_complete:
            part = unpack.feed(await self._next(), self._most + 1 - total)
            total += len(part)
            parts.append(part)
            if total > self._most:
                raise self._too_large()
        unpack.finish()
        return b"".join(parts)

    async def discard(self) -> None:
        """Read on for a moment: an answer sent before the client has sent its body may be lost."""
        try:
            async with asyncio.timeout(1.0):
                while not self._is_complete and self.size < _DISCARDED * self._most:
                    await self._next(keep=False)
        except (TimeoutError, Gone, BadRequest):
            pass

    async def _next(self, keep: bool = True) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        self._is_complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        self.size += len(body)
        self._owner.held += len(body)
        if keep and self.size > self._most:
            raise self._too_large()
        if keep and self._owner.held > _HELD * self._most:
            raise BadRequest(503, "too many large requests at once; try again later", {"retry-after": "1"})
        return body

    def _unpacker(self) -> _Plain | _Gzip:
        coding = self._headers.get(b"content-encoding", b"identity").strip().lower()
        if coding in (b"identity", b""):
            return _Plain()
        if coding in (b"gzip", b"x-gzip"):
            return _Gzip()
        raise BadRequest(415, "Content-Encoding must be gzip or absent; send the body in one of these forms")

    def _too_large(self) -> BadRequest:
        most = self._most // 1024
        return BadRequest(413, f"the body has more than {most:,} kB; send fewer or shorter texts per request")


class _Plain:
    def feed(self, data: bytes, most: int) -> bytes:
        return data

    def finish(self) -> None:
        pass


class _Gzip:
    """Decompresses one or more gzip members, never to more than the caller allows."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._has_begun = False

    def feed(self, data: bytes, most: int) -> bytes:
        parts, room = [], most
        while data and room > 0:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            self._has_begun = True
            try:
                part = self._member.decompress(data, room)
            except zlib.error as error:
                raise BadRequest(400, f"the body is not valid gzip ({error}); compress it again") from None
            parts.append(part)
            room -= len(part)
            data = self._member.unused_data or self._member.unconsumed_tail
        return b"".join(parts)

    def finish(self) -> None:
        if self._has_begun and not self._member.eof:
            raise BadRequest(400, "the gzip body ends too early; send all of it")


def has_body(scope: Scope) -> bool:
    """Whether the request announces a body."""
    names = [name for name, value in scope["headers"] if name != b"content-length" or value != b"0"]
    return b"content-length" in names or b"transfer-encoding" in names


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the whole body first, and then what the connection gives."""
    waiting = [body]

    async def give() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return give
