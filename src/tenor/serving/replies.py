"""Answers in JSON: results, and errors of one form, `{"error": "what happened; what to do"}`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class BadRequest(Exception):
    """A request that is refused.

    Args:
        status: The HTTP status.
        message: What is wrong, and what to do.
        headers: More headers of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))  # made once: it takes time


def to_json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "replace")


def error_body(message: str) -> bytes:
    return to_json({"error": message})


async def refuse(send: Send, error: BadRequest) -> None:
    """Answer with an error and close the connection, because the rest of the request was not read."""
    body = error_body(error.message)
    headers = {**error.headers, "content-type": "application/json", "content-length": str(len(body))}
    headers["connection"] = "close"
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
