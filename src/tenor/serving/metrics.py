"""What the service counts, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tenor.serving.limits import AsgiApp, Message, Receive, Scope, Send

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServiceMetrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self, num_waiting: Callable[[], float]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("tenor_requests", "Requests by path and status.", ("path", "status"), registry=registry)
        self.seconds = Histogram(
            "tenor_request_seconds", "Seconds until an answer, by path.", ("path",), buckets=_SECONDS, registry=registry
        )
        self.texts = Counter("tenor_texts", "Texts that were classified.", registry=registry)
        self.batch_texts = Histogram("tenor_batch_texts", "Texts per batch.", buckets=_SIZES, registry=registry)
        self.batch_seconds = Histogram(
            "tenor_batch_seconds", "Seconds that a batch is computed.", buckets=_SECONDS, registry=registry
        )
        self.reloads = Counter(
            "tenor_reloads", "Attempts to load a new model, by result.", ("result",), registry=registry
        )
        self.model = Gauge("tenor_model", "1 for the version of the model in use.", ("version",), registry=registry)
        self.ready = Gauge("tenor_ready", "1 if the service takes requests, 0 while it stops.", registry=registry)
        waiting = Gauge("tenor_waiting_texts", "Texts that wait to be computed.", registry=registry)
        waiting.set_function(num_waiting)

    def on_batch(self, size: int, seconds: float) -> None:
        self.texts.inc(size)
        self.batch_texts.observe(size)
        self.batch_seconds.observe(seconds)

    def on_model(self, version: str) -> None:
        self.model.clear()
        self.model.labels(version).set(1)

    def render(self) -> bytes:
        return generate_latest(self.registry)


class CountRequests:
    """Pure ASGI middleware: counts answers and their seconds. Unknown paths share one name, so names stay few."""

    def __init__(self, app: AsgiApp, metrics: ServiceMetrics, paths: frozenset[str]) -> None:
        self.app, self._metrics, self._paths = app, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, path = time.perf_counter(), scope["path"] if scope["path"] in self._paths else "other"
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            self._metrics.requests.labels(path, str(status or "closed")).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - began)
