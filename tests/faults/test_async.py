"""A parameter server under kills, signals and slow workers applies every gradient once and never stalls."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers.mpi import MPI_VARIABLES, mpirun, needs_mpi
from helpers.processes import finish, python, running
from helpers.training import events

BATCHES = 118  # of 256 points


def training(
    out: Path, *options: str, workers: int = 2, over_mpi: bool = False
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    given = ("--strategy", "async", "--workers", str(workers), "--threads", "1", "--batch-size", "256", "--json")
    command = python("-m", "tenor", "train", "points", "--task", "points", "--out", str(out), *given, *options)
    return running(mpirun(workers + 1, *command), **MPI_VARIABLES) if over_mpi else running(command)


def team_of(process: subprocess.Popen[bytes], variable: str = "TENOR_RANK") -> dict[int, psutil.Process]:
    """Return the processes by rank; rank 0 is the parameter server."""
    found = {}
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.Error, KeyError):  # a process that is ending, or has not set its variable yet
            found[int(child.environ()[variable])] = child
    return found


def wait_for(condition: Callable[[], bool], timeout: float = 60) -> None:
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def tail(run: Path) -> list[dict[str, Any]]:
    """Return the last steps of a run that is still going; its last line may be incomplete."""
    with contextlib.suppress(OSError):
        with (run / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 8192))
            lines = file.read().split(b"\n")[1:-1]
        return [event for event in map(json.loads, lines) if event["event"] == "step"]
    return []


def has_worked(run: Path, worker: int) -> bool:
    return any(lease[0] == worker for event in tail(run) for lease in event["leases"])


def kill_workers(process: subprocess.Popen[bytes], run: Path, kills: int) -> None:
    """Kill random workers; after each kill, wait until the server has applied a gradient of the replacement."""
    rng = random.Random(3)
    wait_for(lambda: has_worked(run, 0) and has_worked(run, 1))
    for _ in range(kills):
        worker = rng.randrange(2)
        victim = team_of(process)[worker + 1]
        victim.kill()
        wait_for(lambda w=worker, v=victim: team_of(process).get(w + 1, v) != v)  # type: ignore[misc]
        step = tail(run)[-1]["step"]
        wait_for(
            lambda w=worker, s=step: any(e["step"] > s and w in [lease[0] for lease in e["leases"]] for e in tail(run))
        )  # type: ignore[misc]
        time.sleep(0.3 * rng.random())


def check_ledger(run: Path) -> None:
    """Check that every batch of every finished epoch was applied exactly once, and every push at most once."""
    seen = events(run)
    applied = Counter((event["epoch"], *lease[2:]) for event in seen for lease in event["leases"])
    assert set(applied.values()) == {1}
    assert all(len({lease[2] for lease in event["leases"]}) == 1 for event in seen)  # an update is a batch
    assert len({name[:2] for name in applied}) == len(seen) == seen[-1]["step"]
    assert len(applied) == sum(len(event["leases"]) for event in seen)
    for epoch in range(1, seen[-1]["epoch"]):
        assert {batch for e, batch, _ in applied if e == epoch} == set(range(BATCHES))
    assert sum(event["samples"] for event in seen if event["epoch"] < seen[-1]["epoch"]) % 30_000 == 0


def end_by_resuming(run: Path) -> dict[str, Any]:
    """Resume the run for some more steps, beyond the end of the epoch in progress."""
    log = run / "metrics.jsonl"
    log.write_bytes(log.read_bytes().rpartition(b"\n")[0] + b"\n")  # a kill may have cut a line short
    steps = (events(run)[-1]["step"] // BATCHES + 2) * BATCHES
    with training(run, "--epochs", "1000", "--resume", "--max-steps", str(steps)) as process:
        result = finish(process)
    assert result["steps"] == steps
    return result


def test_killed_workers_are_replaced_and_every_gradient_is_applied_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(run, "--epochs", "1000") as process:
        kill_workers(process, run, 1)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"--resume" in stderr
    check_ledger(run)
    assert end_by_resuming(run)["test"]["accuracy"] > 0.9
    check_ledger(run)


@pytest.mark.soak
def test_ten_kills(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(run, "--epochs", "200") as process:
        kill_workers(process, run, 10)
        result = finish(process, 900)
    assert (result["replaced"], result["epochs"]) == (10, 200)
    check_ledger(run)


@pytest.mark.soak
def test_a_stopped_worker_is_named_and_the_others_do_its_work(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(run, "--epochs", "6") as process:
        wait_for(lambda: has_worked(run, 1))
        team_of(process)[2].send_signal(signal.SIGSTOP)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    assert "worker 1 is stopped (SIGSTOP); the others do its work meanwhile" in stderr.decode()
    assert (json.loads(stdout)["epochs"], json.loads(stdout)["replaced"]) == (6, 0)
    check_ledger(run)


def test_a_lost_server_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(run, "--epochs", "1000", "--max-replacements", "0") as process:
        wait_for(lambda: has_worked(run, 0))
        team = team_of(process)
        team[0].kill()
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 1
    said = stderr.decode()
    assert "the parameter server" in said and "SIGKILL" in said and "--resume" in said
    assert psutil.wait_procs(team.values(), timeout=5)[1] == []


@needs_mpi
def test_under_mpi_every_gradient_is_applied_once(tmp_path: Path) -> None:
    with training(tmp_path / "run", "--epochs", "2", over_mpi=True) as process:
        result = finish(process)
    assert (result["workers"], result["epochs"], result["steps"]) == (2, 2, 2 * BATCHES)
    assert result["test"]["accuracy"] > 0.7
    check_ledger(tmp_path / "run")


@needs_mpi
@pytest.mark.soak
def test_under_mpi_a_killed_rank_ends_the_job_and_resume_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(run, "--epochs", "1000", over_mpi=True) as process:
        wait_for(lambda: any(event["epoch"] > 1 for event in tail(run)))
        team = team_of(process, "OMPI_COMM_WORLD_RANK")
        team[2].kill()
        _, stderr = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "rank 2" in stderr.decode().lower() and "signal 9" in stderr.decode()
    assert psutil.wait_procs(team.values(), timeout=5)[1] == []
    end_by_resuming(run)
    check_ledger(run)


@pytest.mark.serial
def test_a_slow_worker_s_late_work_is_not_applied(tmp_path: Path) -> None:
    with training(tmp_path / "run", "--staleness", "1", "--slowdown", "1:10", "--epochs", "2") as process:
        result = finish(process)
    seen = events(tmp_path / "run")
    assert result["requeued"] == sum(event["requeued"] for event in seen) > 0
    assert result["staleness_max"] == max(event["staleness"] for event in seen) <= 1.0
    check_ledger(tmp_path / "run")


@pytest.mark.soak
def test_a_worker_slowed_tenfold_leaves_the_others_their_speed(tmp_path: Path) -> None:
    """Two fast workers beside a slow one keep two thirds of the rate of three fast workers.

    The workers sleep most of the time, so that two cores are enough for three of them.
    """
    rates = {}
    for name, slowdown in (("alike", "0:20,1:20,2:20"), ("one slow", "0:20,1:20,2:200")):
        options = ("--staleness", "4", "--epochs", "5", "--slowdown", slowdown)
        with training(tmp_path / name, *options, workers=3) as process:
            rates[name] = finish(process, 600)["samples_per_s"]
        assert max(event["staleness"] for event in events(tmp_path / name)) <= 4
        check_ledger(tmp_path / name)
    assert rates["one slow"] >= 0.85 * 2 / 3 * rates["alike"], rates


def attack(port: int, until: threading.Event) -> None:
    """Do what a local user without the token can do: send malformed messages and open connections that stay silent."""
    shape = json.dumps({"kind": "push", "values": {}, "arrays": [["<f4", [10**30]]]}).encode()
    surrogate = b'{"kind":"hello","values":{"worker":0,"token":"\\ud800"},"arrays":[]}'
    heads = [shape, b"[" * 4000, surrogate, b"{}", b""]
    silent: list[socket.socket] = []
    with contextlib.ExitStack() as opened:
        while not until.is_set():
            for head in heads:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
                    connection.sendall(struct.pack("!4sIQ", b"tnr1", len(head), 0) + head)
            if len(silent) < 150:
                with contextlib.suppress(OSError):
                    silent.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), 5)))
                    silent[-1].sendall(b"t")
            time.sleep(0.01)


def listening_port(process: subprocess.Popen[bytes]) -> int | None:
    with contextlib.suppress(psutil.Error):
        server = team_of(process).get(0)
        for found in server.net_connections("tcp") if server else ():
            if found.status == psutil.CONN_LISTEN:
                return int(found.laddr.port)
    return None


@pytest.mark.serial
def test_a_stranger_without_the_token_changes_nothing(tmp_path: Path) -> None:
    over = threading.Event()
    with training(tmp_path / "run", "--epochs", "3") as process:
        wait_for(lambda: listening_port(process) is not None)
        port = listening_port(process)
        assert port is not None
        stranger = threading.Thread(target=attack, args=(port, over))
        stranger.start()  # before the workers have connected
        try:
            result = finish(process)
        finally:
            over.set()
            stranger.join()
    assert (result["epochs"], result["replaced"], result["steps"]) == (3, 0, 3 * BATCHES)
    assert result["test"]["accuracy"] > 0.8
    check_ledger(tmp_path / "run")
