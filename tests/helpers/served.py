"""Serve a folder over HTTP on loopback, with a choice of server behaviours: `/ranges/NAME`, `/plain/NAME` and so on."""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Yield the server's address, below which every behaviour has its own path.

    `ranges` serves parts of a file, `plain` only whole files, `sizeless` whole files without Content-Length,
    `dropping` closes the connection halfway, and `failing` answers 500.
    """

    class Handler(_Handler):
        files = folder

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    files: Path

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        body = self._answer()
        with contextlib.suppress(ConnectionError):  # the client may close the connection early
            self.wfile.write(body)

    def _answer(self) -> bytes:
        behaviour, name = self.path.partition("?")[0].lstrip("/").split("/")
        if behaviour == "failing" or not (self.files / name).exists():
            self.send_error(500 if behaviour == "failing" else 404)
            return b""
        body, wanted = (self.files / name).read_bytes(), re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        size, status = len(body), 200
        if wanted and behaviour == "ranges":
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, size)
            body, status = body[start:end], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if behaviour != "sizeless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return body[: len(body) // 2] if behaviour == "dropping" else body

    def log_message(self, *args: Any) -> None:
        pass
