"""`tenor doctor --serve`: starts a service with a stand-in model on loopback and tries what a deployment relies on."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import tempfile
import threading
from contextlib import closing
from pathlib import Path

from tenor.serving.app import Service
from tenor.serving.process.remote import Contribution
from tenor.serving.reload import CurrentModel
from tenor.serving.server import DrainingServer, address_of, bind
from tenor.serving.settings import TOKEN_VARIABLE, ServeSettings

_SECONDS = 20.0


class _StandIn:
    """A model that needs no run folder."""

    is_alive = True

    def __init__(self, run: Path, threads: int) -> None:
        self.labels: tuple[str, ...] = ("negative", "positive")
        self.version, self.threshold = "stand-in", 0.5

    def predict_proba(self, texts: list[str]) -> list[list[float]]:
        return [[0.25, 0.75] for _ in texts]

    def explain(self, texts: list[str]) -> list[list[Contribution]]:
        return [[] for _ in texts]

    def close(self, patience: float = 60.0) -> None:
        pass


def check_service() -> dict[str, dict[str, object]]:
    """Each check with whether it works, and a detail. Nothing is raised for a check that fails."""
    token, settings = secrets.token_urlsafe(24), ServeSettings(port=0, max_body_kb=16, drain_seconds=1.0)
    is_ready = threading.Event()
    with tempfile.TemporaryDirectory(prefix="tenor-doctor-") as folder, bind(settings) as listener:
        service = Service(CurrentModel(Path(folder), 1, _StandIn), settings)
        server = DrainingServer(service, token, listener, lambda address: is_ready.set())
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            is_ready.wait(_SECONDS)
            found = _try_requests(int(address_of(listener).rpartition(":")[2]), token)
        finally:
            server.should_exit = True
            thread.join(_SECONDS)
    found["drain"] = _result(not thread.is_alive(), "the service has stopped", "the service does not stop")
    found["files"] = _file_limit(ServeSettings().max_connections)
    detail = f"{TOKEN_VARIABLE} is set" if os.environ.get(TOKEN_VARIABLE) else "none: only loopback can be served"
    return {**found, "token": {"works": True, "detail": detail}}


def _try_requests(port: int, token: str) -> dict[str, dict[str, object]]:
    body = json.dumps({"texts": ["a good film"]}).encode()
    checks: dict[str, tuple[str, str, bytes | None, str, int]] = {
        "health": ("GET", "/healthz", None, "", 200),
        "readiness": ("GET", "/readyz", None, "", 200),
        "page": ("GET", "/", None, "", 200),
        "prediction": ("POST", "/predict", body, token, 200),
        "without a token": ("POST", "/predict", body, "", 401),
        "large body": ("POST", "/predict", b" " * 20_000, token, 413),
        "metrics": ("GET", "/metrics", None, token, 200),
    }
    return {name: _try(port, *check) for name, check in checks.items()}


def _try(port: int, method: str, path: str, body: bytes | None, token: str, expected: int) -> dict[str, object]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)) as connection:
            connection.request(method, path, body, headers)
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return {"works": False, "detail": f"{method} {path}: {error}"}
    return _result(status == expected, f"{method} {path} answers {status}", f"{method} {path} answers {status}")


def _file_limit(connections: int) -> dict[str, object]:
    try:
        import resource
    except ImportError:  # not on Windows
        return {"works": True, "detail": "this system has no limit on open files"}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    enough = hard in (resource.RLIM_INFINITY,) or hard > connections
    remedy = f"at most {hard} open files: raise the limit (LimitNOFILE, ulimit -n), or lower --max-connections"
    return _result(enough, f"enough open files for {connections} connections", remedy)


def _result(works: bool, good: str, bad: str) -> dict[str, object]:
    return {"works": works, "detail": good if works else bad}
