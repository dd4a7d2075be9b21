"""A stop and a new model under load: nothing that was accepted is lost."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from helpers.models import change_weights, write_model
from helpers.service import Client, FakeModel, serve_command, served, until

import tenor
from tenor.errors import WorkerError
from tenor.serving.process.model import grouped
from tenor.serving.process.remote import RemoteModel
from tenor.serving.reload import CurrentModel
from tenor.serving.server import bind
from tenor.serving.settings import ServeSettings

TOKEN = "a-token-that-nobody-may-see"


class Callers:
    """Threads that send requests without pause, until the service refuses connections or they are told to end."""

    def __init__(self, client: Client, count: int, texts: Any = "good film") -> None:
        self.client, self.texts = client, texts
        self.statuses: Counter[int | str] = Counter()
        self.models: Counter[str] = Counter()
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self._call) for _ in range(count)]

    def __enter__(self) -> Callers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join(30)

    def _call(self) -> None:
        while not self.is_over.is_set():
            try:
                answer = self.client.predict(self.texts)
            except ConnectionRefusedError:
                return
            except OSError as error:
                self.statuses[repr(error)] += 1
            else:
                self.statuses[answer.status] += 1
                if answer.status == 200:
                    self.models[answer.json["model"]] += 1


def test_readiness_drops_first_and_accepted_requests_are_answered(folder: Path) -> None:
    with served(folder, drain_seconds=4.0) as client:
        assert client.model is not None
        client.model.wait.clear()
        with Callers(client, 3) as callers:
            until(lambda: client.model is not None and client.model.batches)
            client.stop()
            until(lambda: client.get("/readyz").status == 503)  # and still answers
            assert client.get("/healthz").status == 200
            client.model.wait.set()
        assert set(callers.statuses) == {200} and callers.statuses[200] >= 3


def stop_below_callers(folder: Path) -> set[int | str]:
    with served(folder, drain_seconds=1.0) as client, Callers(client, 24) as callers:
        until(lambda: callers.statuses[200] > 24)
        began = time.monotonic()
        client.stop()
        until(lambda: not any(thread.is_alive() for thread in callers.threads))  # each was refused a connection
        assert time.monotonic() - began < 8.0
    return set(callers.statuses)


@pytest.mark.serial
def test_a_stop_ends_although_clients_connect_again_at_once(folder: Path) -> None:
    """The system resets a connection that it completes between the last accept and the close, a few microseconds.

    On a busy machine the service may be kept from the processor in this moment, so there are three attempts.
    """
    found = [stop_below_callers(folder)]
    while not found[-1] <= {200, 503} and len(found) < 3:
        found.append(stop_below_callers(folder))
    assert found[-1] <= {200, 503}, found


def test_requests_are_answered_after_the_listener_has_closed(folder: Path) -> None:
    with served(folder, drain_seconds=4.0) as client:
        assert client.model is not None
        client.model.wait.clear()
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(client.predict("abc")))
        caller.start()
        until(lambda: client.model is not None and client.model.batches)
        client.stop()
        until(lambda: not accepts(client.port))
        client.model.wait.set()
        caller.join(20)
        assert [answer.status for answer in answers] == [200]
        assert answers[0].headers["connection"] == "close"


def test_what_is_not_done_in_time_is_answered_and_the_service_ends(folder: Path) -> None:
    """A body that never arrives, and a model that never answers."""
    with served(folder, drain_seconds=1.5, request_seconds=60.0) as client:
        assert client.model is not None
        client.model.wait.clear()
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(client.predict("abc")))
        caller.start()
        until(lambda: client.model is not None and client.model.batches)
        with socket.create_connection(("127.0.0.1", client.port), timeout=20) as half:
            half.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            until(lambda: client.get("/healthz").status == 200)
            began = time.monotonic()
            client.stop()
            received = b"".join(iter(partial(half.recv, 4096), b""))
        caller.join(20)
    assert time.monotonic() - began < 1.5 + 5.0  # without an end it would be 60 s
    assert received.startswith(b"HTTP/1.1 503 ") and b"the service is stopping" in received
    assert [answer.status for answer in answers] == [503] and not client.model.is_alive


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def test_a_link_that_leads_to_another_run_loads_it_without_a_failed_request(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to("first")
    with served(link, reload_seconds=0.05) as client, Callers(client, 3) as callers:
        until(lambda: callers.models["first"])
        (tmp_path / "new").symlink_to("second")
        (tmp_path / "new").rename(link)
        until(lambda: callers.models["second"] > 5)
        assert 'tenor_reloads_total{result="done"} 1.0' in client.get("/metrics").body.decode()
    assert set(callers.statuses) == {200}
    assert [model.is_alive for model in client.models] == [False, False]  # both were closed


def test_a_batch_that_meets_a_replaced_model_uses_the_new_one(tmp_path: Path) -> None:
    current = CurrentModel(tmp_path, 1, FakeModel)
    old, new = current.model, FakeModel(tmp_path, 1)

    def work(model: Any) -> str:
        if model is old:
            current.model = new  # it is replaced and closed before the batch reaches it
            raise WorkerError("closed")
        return "new"

    assert current.use(work) == "new"
    with pytest.raises(WorkerError):
        current.use(fail)


def fail(model: Any) -> None:
    raise WorkerError("ended")


def test_a_model_whose_process_has_ended_is_started_again(folder: Path) -> None:
    with served(folder, reload_seconds=0.05) as client:
        assert client.model is not None
        client.model.is_alive = False
        until(lambda: len(client.models) == 2)
        until(lambda: client.get("/readyz").status == 200)
        assert client.predict("abc").status == 200


def test_a_run_that_cannot_be_used_leaves_the_old_one_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from helpers import service

    def load(self: Any, run: Path, threads: int) -> None:
        if (run / "vocab.json").exists():
            raise tenor.TenorError("is damaged", where=run)
        original(self, run, threads)

    original = service.FakeModel.__init__
    monkeypatch.setattr(service.FakeModel, "__init__", load)
    with served(tmp_path, reload_seconds=0.05) as client:
        (tmp_path / "vocab.json").write_text("{}")
        until(lambda: 'tenor_reloads_total{result="failed"} 1.0' in client.get("/metrics").body.decode())
        assert client.predict("abc").status == 200 and client.get("/readyz").status == 200
    assert "the old one stays" in caplog.text and "is damaged" in caplog.text


@pytest.mark.serial
@pytest.mark.parametrize("callers", [4, pytest.param(100, marks=pytest.mark.soak)])
def test_the_command_serves_reloads_and_drains(tmp_path: Path, callers: int) -> None:
    first, link = write_model(tmp_path / "first"), tmp_path / "current"
    second = write_model(tmp_path / "second", hidden=5)
    link.symlink_to(first.name)
    texts = ["good film", "not good, bad plot!", "", "unknown words only", "good " * 400]
    # No request is refused because of a busy machine.
    patient = ("--max-wait-ms", "60000", "--request-seconds", "60", "--batch-size", "512")
    words = ("--reload-seconds", "0.2", "--drain-seconds", "6", *patient)
    with serve_command(link, *words, TENOR_TOKEN=TOKEN) as running:
        check_same(running.client, first, texts)
        with Callers(running.client, callers, texts) as load:
            version = next(iter(wait_for_models(load, 1)))
            (tmp_path / "new").symlink_to(second.name)
            (tmp_path / "new").rename(link)
            until(lambda: len(load.models) == 2, 60)
            check_same(running.client, second, texts)
            assert set(load.statuses) == {200}  # the new model cost no request
            began = time.monotonic()
            os.kill(running.process.pid, signal.SIGTERM)
            until(lambda: running.client.get("/readyz").status == 503, 5)
            said = running.output()
            assert time.monotonic() - began < 10
        assert set(load.statuses) <= {200, 503} and load.models[version]
        assert running.process.returncode == 128 + signal.SIGTERM
        assert "all accepted requests were answered" in said and "is in use now" in said
        assert TOKEN not in said and "Traceback" not in said


@pytest.mark.serial
def test_a_second_signal_ends_the_command_at_once(run: Path) -> None:
    with serve_command(run, "--drain-seconds", "60") as running:
        (model,) = psutil.Process(running.process.pid).children()
        model.suspend()  # its answer never comes
        with Callers(running.client, 1) as load:
            until(lambda: running.client.get("/metrics").body.count(b'tenor_requests_total{path="/metrics"'))
            os.kill(running.process.pid, signal.SIGTERM)
            until(lambda: running.client.get("/readyz").status == 503, 5)
            os.kill(running.process.pid, signal.SIGTERM)
            said = running.output(10)
        assert running.process.returncode == 128 + signal.SIGTERM
        assert not model.is_running() or model.status() == psutil.STATUS_ZOMBIE
        assert "1 requests were not done in time" in said and "Traceback" not in said, said
        assert 200 not in load.statuses


def test_a_model_that_does_not_answer_is_killed(run: Path) -> None:
    model = RemoteModel(run, 1)
    psutil.Process(model._process.pid).suspend()
    errors: list[Exception] = []

    def ask() -> None:
        try:
            model.predict_proba(["good"])
        except WorkerError as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(model._lock.locked)
    model.close(0.1)
    asking.join(20)
    assert len(errors) == 1 and not model.is_alive


def wait_for_models(load: Callers, count: int) -> list[str]:
    until(lambda: len(load.models) >= count, 60)
    return list(load.models)


def check_same(client: Client, run: Path, texts: list[str]) -> None:
    """The service gives the probabilities of the model, and explanations whose words are those of the text."""
    answer = client.predict(texts, probabilities=True, explain=True)
    while answer.status == 503:
        answer = client.predict(texts, probabilities=True, explain=True)
    model = tenor.load(run)
    expected = model.probabilities(texts)
    for text, found, row in zip(texts, answer.json["predictions"], expected, strict=True):
        assert list(found["probabilities"].values()) == pytest.approx(row.tolist(), abs=1e-5)
        assert all(text[p["start"] : p["end"]] == p["text"] for p in found["explanation"])
        assert found["label"] == model.predict([text])[0].label
        pieces = grouped(text, model.explain(text, found["label"]))
        own = [(start, end, words, pytest.approx(value, abs=1e-5)) for start, end, words, value in pieces]
        assert [(p["start"], p["end"], p["text"], p["contribution"]) for p in found["explanation"]] == own


def test_the_command_refuses_an_open_network_without_a_token(tmp_path: Path) -> None:
    from helpers.command import run_tenor

    assert "reachable from other machines and there is no token" in run_tenor(
        "serve", tmp_path, "--host", "0.0.0.0"
    ).failed(2)


def test_a_taken_port_is_named() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(tenor.TenorError, match=f"port {port}: Address already in use"):
            bind(ServeSettings(port=port))


def test_a_damaged_run_is_refused_with_the_reason_of_its_process(tmp_path: Path) -> None:
    broken = write_model(tmp_path / "broken")
    change_weights(broken, extra__weight=torch.zeros(1))
    with pytest.raises(tenor.TenorError, match=re.escape(str(broken / "model.safetensors"))):
        RemoteModel(broken, 1)
