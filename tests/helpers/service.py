"""Services for tests: a stand-in model inside this process, and `tenor serve` in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from helpers.processes import child_environment, kill_group, python

from tenor.serving.app import Service
from tenor.serving.process.remote import Contribution
from tenor.serving.reload import CurrentModel
from tenor.serving.server import DrainingServer, address_of, bind
from tenor.serving.settings import ServeSettings


class FakeModel:
    """Gives each text a probability by its length; `wait` holds every batch until it is set."""

    def __init__(self, run: Path, threads: int) -> None:
        self.labels, self.version, self.is_alive = ("negative", "positive"), run.name, True
        self.threshold = 0.5
        self.wait = threading.Event()
        self.wait.set()
        self.batches: list[int] = []
        self.explained: list[int] = []

    def predict_proba(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        assert self.wait.wait(20)
        return [[1 - chance(text), chance(text)] for text in texts]

    def explain(self, texts: list[str]) -> list[list[Contribution]]:
        self.explained.append(len(texts))
        return [[(0, len(text), text, 0.5)] for text in texts]

    def close(self, patience: float = 60.0) -> None:
        """As a process that is killed: a batch that waits ends."""
        self.is_alive = False
        self.wait.set()


def chance(text: str) -> float:
    return (len(text) % 10 + 0.5) / 10.5


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client(NamedTuple):
    """Sends requests to a service on this machine."""

    port: int
    model: FakeModel | None = None
    token: str = ""
    models: tuple[FakeModel, ...] | list[FakeModel] = ()  # all that were loaded
    stop: Callable[[], None] = lambda: None  # as SIGTERM does

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            named.setdefault("authorization", f"Bearer {self.token}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def predict(self, texts: Any, **options: Any) -> Answer:
        body = json.dumps({"texts": texts, **options}).encode()
        return self.send("POST", "/predict", body, content_type="application/json")


@contextlib.contextmanager
def served(folder: Path, token: str | None = None, **options: Any) -> Iterator[Client]:
    """Serve a stand-in model from a thread of this process."""
    settings = ServeSettings(**{"port": 0, "drain_seconds": 2.0, "batch_wait_ms": 1.0, **options})
    models: list[FakeModel] = []

    def load(run: Path, threads: int) -> FakeModel:
        models.append(FakeModel(run, threads))
        return models[-1]

    is_ready, loops = threading.Event(), []

    def on_ready(address: str) -> None:
        loops.append(asyncio.get_running_loop())
        is_ready.set()

    with bind(settings) as listener:
        server: list[DrainingServer] = []

        def run() -> None:
            server.append(DrainingServer(Service(CurrentModel(folder, 0, load), settings), token, listener, on_ready))
            server[0].run([listener])

        port = int(address_of(listener).rpartition(":")[2])
        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert is_ready.wait(20), "the service has not started"
            handle = server[0].handle_exit
            stop = partial(loops[0].call_soon_threadsafe, handle, signal.SIGTERM, None)
            yield Client(port, models[0], token or "", models, stop)
        finally:
            for model in models:
                model.wait.set()
            if server:
                server[0].should_exit = True
            thread.join(15)
        assert not thread.is_alive()


class ServeProcess(NamedTuple):
    process: subprocess.Popen[bytes]
    client: Client

    def output(self, timeout: float = 20) -> str:
        return self.process.communicate(timeout=timeout)[1].decode()


@contextlib.contextmanager
def serve_command(run: Path, *words: str, **variables: str) -> Iterator[ServeProcess]:
    """Run `tenor serve RUN` on a free port."""
    process = subprocess.Popen(
        python("-m", "tenor", "serve", str(run), "--port", "0", "--json", *words),
        env=child_environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=10)[1].decode()
        port = int(json.loads(line)["address"].rpartition(":")[2])
        yield ServeProcess(process, Client(port, token=variables.get("TENOR_TOKEN", "")))
    finally:
        kill_group(process)
        process.communicate()


def until(condition: Any, seconds: float = 20.0) -> None:
    """Wait for a condition, which a test needs before it goes on."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition has not come true"
        time.sleep(0.01)
