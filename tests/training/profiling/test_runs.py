"""Profiles of whole runs: every strategy, one time line, the same weights as without."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.command import run_tenor
from helpers.together import make_loop, together
from helpers.training import run

from tenor.errors import RunError, WorkerError
from tenor.reports.runs.profile import read_profile
from tenor.training.parameter_server.claims import MOST_SPANS, read_counts
from tenor.training.profiling.collect import gather_spans
from tenor.training.profiling.spans import OFF, PARTS, STEP, Profiler, RecordingProfiler, Span
from tenor.training.profiling.trace import trace_events
from tenor.training.recipe import complete
from tenor.training.settings import TrainSettings
from tenor.training.tasks.points import Points

POINTS: dict[str, Any] = {"task": "points", "hidden": 16, "batch_size": 500, "epochs": 1}


def check_trace(trace: dict[str, Any], num_workers: int) -> None:
    """The Trace Event Format: complete events with a time and a duration, properly nested on every thread."""
    events = trace["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert len(names) == num_workers
    timed = [e for e in events if e["ph"] == "X"]
    assert {e["ph"] for e in events} == {"M", "X"} and min(e["ts"] for e in timed) == 0
    for process in names:
        for thread in (0, 1):
            own = [e for e in timed if (e["pid"], e["tid"]) == (process, thread)]
            own.sort(key=lambda e: (e["ts"], -e["dur"]))
            for one, other in pairwise(own):
                end = one["ts"] + one["dur"]
                assert other["ts"] >= end - 0.01 or other["ts"] + other["dur"] <= end + 0.01


@pytest.mark.parametrize(
    ("strategy", "size"),
    [
        ("single", 1),
        ("allreduce", 2),
        ("local-sgd", 2),
        ("diloco", 2),
        ("hogwild", 2),
        ("model-parallel", 2),
        ("hybrid", 4),
    ],
)
def test_every_strategy_records_its_parts(strategy: str, size: int, tmp_path: Path) -> None:
    settings = complete(TrainSettings(strategy=strategy, workers=size, **POINTS), None)
    task = Points(settings)

    def act(seat: Any) -> dict[str, list[Span]]:
        loop = make_loop(task, settings, seat, tmp_path / "meeting")
        loop.strategy.profile = RecordingProfiler()
        loop.run()
        return gather_spans(loop.strategy.profile, seat)

    every = together(size, act)
    tracks = every[0]
    assert all(other == tracks for other in every)
    assert list(tracks) == [f"worker {rank}" for rank in range(size)]
    for spans in tracks.values():
        assert [span.step for span in spans if span.name == STEP] == list(range(1, 61))
        assert {span.name for span in spans} >= set(PARTS) - ({"wait"} if size == 1 else {"wait", "exchange"})
    if size > 1:
        assert any(span.name == "wait" for spans in tracks.values() for span in spans)
    check_trace(trace_events(tracks), size)


def test_recording_does_not_change_the_weights() -> None:
    settings = complete(TrainSettings(workers=2, **POINTS), None)
    task = Points(settings)

    def act(seat: Any, profile: Profiler) -> str:
        loop = make_loop(task, settings, seat)
        loop.strategy.profile = profile
        loop.run()
        return str(loop.summary()["weights_sha256"])

    hashes = {together(2, lambda seat, p=profile: act(seat, p))[0] for profile in (OFF, RecordingProfiler())}  # type: ignore[misc]
    assert len(hashes) == 1


def test_a_run_writes_both_files(tmp_path: Path) -> None:
    result = run(Path("points"), tmp_path / "run", **POINTS, workers="2", threads=1, profile=True)
    check_trace(json.loads((tmp_path / "run" / "trace.json").read_text()), 2)
    profile = read_profile(tmp_path / "run")
    assert profile is not None
    assert profile.names == ["worker 0", "worker 1"] and (profile.first, profile.last) == (11, 60)
    for worker in profile.workers:
        assert worker.seconds == pytest.approx(result["profile"]["workers"][worker.name])
        assert all(worker.seconds[part] > 0 for part in PARTS if part != "wait")
    steps = result["profile"]["steps"]
    whole = max(sum(worker.seconds.values()) for worker in profile.workers) * steps
    assert 0 < whole < result["seconds"]  # the steps that count are a part of the run


@pytest.mark.serial
def test_workers_of_a_parameter_server_send_their_spans(tmp_path: Path) -> None:
    shown = run_tenor(
        *("train", "points", "--task", "points", "--out", tmp_path / "run", "--strategy", "async", "--workers", "2"),
        *("--hidden", "16", "--batch-size", "500", "--epochs", "1", "--profile"),
    ).ok()
    assert "where a step goes" in shown.stdout and "server" in shown.stdout
    check_trace(json.loads((tmp_path / "run" / "trace.json").read_text()), 3)
    profile = read_profile(tmp_path / "run")
    assert profile is not None and profile.names == ["server", "worker 0", "worker 1"]
    server, *workers = profile.workers
    assert server.seconds["update"] > 0 and server.seconds["forward"] == 0
    for worker in workers:
        assert min(worker.seconds[part] for part in ("load", "forward", "backward", "exchange", "wait")) > 0


COUNTS = {"sequence": 1, "loss": 1.0, "weight": 1.0, "samples": 1, "tokens": 1, "padded": 1, "saved": 0, "signal": 0}


def test_spans_of_a_push_are_read() -> None:
    assert read_counts(COUNTS).spans == ()
    assert read_counts({**COUNTS, "spans": [["load", 1.5, 2, 7]]}).spans == (Span("load", 1.5, 2.0, 7),)


@pytest.mark.parametrize(
    "spans",
    [
        "load",
        [1],
        [["load", 1.0, 2.0]],
        [["sleep", 1.0, 2.0, 1]],
        [["load", 2.0, 1.0, 1]],
        [["load", float("nan"), 1.0, 1]],
        [["load", 1.0, float("inf"), 1]],
        [["load", -1.0, 1.0, 1]],
        [["load", 1.0, 2.0, 1.5]],
        [[["load"], 1.0, 2.0, 1]],
        [["load", 1.0, 2.0, 1]] * (MOST_SPANS + 1),
    ],
)
def test_invalid_spans_are_refused(spans: Any) -> None:
    with pytest.raises(WorkerError, match=r"spans|start|end|step"):
        read_counts({**COUNTS, "spans": spans})


GOOD = {
    "format": 1,
    "first_step": 1,
    "last_step": 2,
    "parts": ["load"],
    "workers": [{"name": "worker 0", "seconds": {"load": 0.5}}],
    "timeline": [[0, 0, 0.0, 1.0]],
}


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"first_step": None},
        {"workers": {}},
        {"workers": [{"name": "x", "seconds": {"load": "1"}}]},
        {"workers": [7]},
        {"timeline": [[1, 0, 0.0, 1.0]]},
        {"timeline": [[0, 1, 0.0, 1.0]]},
        {"timeline": [[0, 0, -1.0, 1.0]]},
        {"timeline": [[0, 0]]},
        {"parts": 3},
    ],
)
def test_a_damaged_profile_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "profile.json").write_text(json.dumps(GOOD))
    assert read_profile(tmp_path) is not None
    (tmp_path / "profile.json").write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(RunError, match=r"profile\.json"):
        read_profile(tmp_path)


def test_times_are_microseconds() -> None:
    trace = trace_events({"worker 0": [Span("load", 100.0, 100.25, 7)], "worker 1": [Span("wait", 100.5, 102.0, 7)]})
    first, second = (event for event in trace["traceEvents"] if event["ph"] == "X")
    assert (first["ts"], first["dur"], first["pid"], first["args"]) == (0.0, 250_000.0, 0, {"step": 7})
    assert (second["ts"], second["dur"], second["pid"]) == (500_000.0, 1_500_000.0, 1)
