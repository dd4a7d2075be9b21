"""The bearer token: where it comes from, and the check of each request."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path

from tenor.errors import UsageError
from tenor.serving.limits import AsgiApp, Receive, Scope, Send
from tenor.serving.replies import BadRequest, refuse
from tenor.serving.settings import TOKEN_VARIABLE, ServeSettings
from tenor.store.trusted import read_bytes

OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/openapi.json"})  # these say nothing about the model
SHORTEST = 16
_LONGEST = 4096
_MAKE = "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def read_token(settings: ServeSettings, environ: Mapping[str, str]) -> str | None:
    """The token from the file or the environment; None if there is none. No message contains the token.

    Raises:
        UsageError: The file cannot be read, the token is not usable, or a token is needed and missing.
    """
    where, token = TOKEN_VARIABLE, environ.get(TOKEN_VARIABLE)
    if settings.token_file is not None:
        where = settings.token_file
        try:  # secrets are often mounted as links, so links are followed
            raw = read_bytes(Path(settings.token_file).resolve(), _LONGEST, UsageError)
        except OSError as error:
            remedy = "give --token-file a file that exists and can be read"
            raise UsageError(f"cannot read the token: {error.strerror}", where=where, remedy=remedy) from None
        token = raw.decode("ascii", "replace").strip()
    if token is None:
        _refuse_open_network(settings)
        return None
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        what = f"the token must have at least {SHORTEST} printable ASCII characters without spaces"
        raise UsageError(what, where=where, remedy=_MAKE)
    return token


def _refuse_open_network(settings: ServeSettings) -> None:
    if not settings.is_loopback and not settings.without_token:
        remedy = f"give --token-file FILE or set {TOKEN_VARIABLE}, or add --without-token to let anyone use the service"
        raise UsageError(
            f"--host {settings.host} is reachable from other machines and there is no token", remedy=remedy
        )


class RequireToken:
    """Pure ASGI middleware: answers 401 unless the request has the token."""

    def __init__(self, app: AsgiApp, token: str | None) -> None:
        self.app = app
        self._expected = None if token is None else token.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_allowed(scope):
            await self.app(scope, receive, send)
            return
        answer = "give the token of the service in the header `Authorization: Bearer TOKEN`"
        await refuse(send, BadRequest(401, answer, {"www-authenticate": "Bearer"}))

    def _is_allowed(self, scope: Scope) -> bool:
        if self._expected is None:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        is_bearer = scheme.lower() == b"bearer"
        return hmac.compare_digest(token.strip(), self._expected) and is_bearer
