"""A folder on a loopback web server of several tempers: `/ranges/NAME`, `/plain/NAME` and so on."""

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
    """The server's address. `ranges` hands out parts of a file, `plain` only the whole, `sizeless` does not even say
    how long it is, `dropping` breaks off halfway, `failing` answers 500."""

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
        with contextlib.suppress(ConnectionError):  # who asked may have heard enough
            self.wfile.write(body)

    def _answer(self) -> bytes:
        temper, name = self.path.partition("?")[0].lstrip("/").split("/")
        if temper == "failing" or not (self.files / name).exists():
            self.send_error(500 if temper == "failing" else 404)
            return b""
        body, wanted = (self.files / name).read_bytes(), re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        size, status = len(body), 200
        if wanted and temper == "ranges":
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, size)
            body, status = body[start:end], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if temper != "sizeless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return body[: len(body) // 2] if temper == "dropping" else body

    def log_message(self, *args: Any) -> None:
        pass
