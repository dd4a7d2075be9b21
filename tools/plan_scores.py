"""Compare plans with measured runs on this machine: `python tools/plan_scores.py --out benchmarks/plan-scores.json`.

Every prediction is made before its run, from a run of one worker or of two equal workers in the same turn. The data are
the demo's reviews. Runs over a network use test hosts (network namespaces), which need root on Linux; without it they
are left out.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenor import environment
from tenor.bench.demo_reviews import prepare_demo_reviews
from tenor.bench.network.hosts import open_hosts, why_not
from tenor.bench.network.spec import parse_network
from tenor.bench.results import Result
from tenor.planning.answers import read_source
from tenor.planning.inputs.run_folder import measure_step
from tenor.planning.plan import make_plan
from tenor.planning.rows import PlanRow
from tenor.planning.settings import PlanSettings
from tenor.store.atomic import write_bytes
from tenor.store.strict import strict_json
from tenor.training.launching.launch import train
from tenor.training.settings import NO_VECTORS, TrainSettings

NETWORKS = ("1gbit,1ms", "100mbit,1ms")
STRATEGIES = ("allreduce", "local-sgd", "async")
STEPS = 160  # a multiple of the steps between two synchronisations of local-sgd


@dataclass(frozen=True)
class Case:
    """What is planned, and how it is trained."""

    name: str
    source: int  # workers of the run that the plan is made from
    planned: dict[str, Any]
    trained: dict[str, Any]
    network: str = ""


def cases() -> Iterator[Case]:
    yield Case("2 workers", 1, {}, {})
    yield Case("mix 1:3, equal shares", 2, {"mix": "1:3"}, {"slowdown": "1:3"})
    yield Case("mix 1:3, balanced", 2, {"mix": "1:3", "balance": True}, {"slowdown": "1:3", "balance": "steps:3"})
    for network in () if why_not() else NETWORKS:
        for name in STRATEGIES:
            planned = {"strategy": name, "network": network, "spread": True}
            yield Case(f"{name}, {network}", 1, planned, {"strategy": name}, network)


class Comparison:
    """Trains, plans and compares in one scratch folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, prepare_demo_reviews(folder)
        self.count = 0

    def turn(self) -> Iterator[tuple[Case, dict[str, float]]]:
        """Measure the sources and then all cases once."""
        sources = {workers: self._train(workers) for workers in (1, 2)}
        for case in cases():
            settings = PlanSettings(workers="2", data=str(self.data), **case.planned)
            row = make_plan(read_source(sources[case.source], settings), settings).rows[0]
            yield case, figures(row, self._train(2, case))

    def _train(self, workers: int, case: Case | None = None) -> Path:
        self.count += 1
        out = self.folder / f"run-{self.count}"
        options = case.trained if case else {}
        settings = TrainSettings(
            workers=workers, threads=1, max_steps=STEPS, test=False, embeddings=NO_VECTORS, **options
        )
        if case is None or not case.network:
            train(self.data, out, settings)
            return out
        with open_hosts(parse_network(case.network), 2 + (case.trained["strategy"] == "async")) as hosts:
            train(self.data, out, settings, hosts=hosts)
        return out


def figures(row: PlanRow, run: Path) -> dict[str, float]:
    """A prediction and its measurement side by side."""
    found = measure_step(run)
    assert found is not None and row.step is not None and row.parts is not None
    return {
        "predicted_ms": 1e3 * row.step.value,
        "low_ms": 1e3 * row.step.low,
        "high_ms": 1e3 * row.step.high,
        "measured_ms": 1e3 * found.seconds,
        "error": row.step.value / found.seconds - 1.0,
        "inside": float(row.step.low <= found.seconds <= row.step.high),
        "predicted_kb": row.parts.bytes_sent / 1e3,
        "sent_kb": found.bytes_sent / 1e3,
        "byte_error": row.parts.bytes_sent / found.bytes_sent - 1.0 if found.bytes_sent else 0.0,
    }


def summarise(name: str, turns: list[dict[str, float]]) -> dict[str, Any]:
    """Medians and spread of all turns; `inside` counts them."""
    row: dict[str, Any] = {"name": name, "repeats": len(turns), "spread": {}}
    for key in turns[0]:
        values = [turn[key] for turn in turns]
        row[key] = sum(values) if key == "inside" else statistics.median(values)
        row["spread"][key] = {"min": min(values), "max": max(values)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="tenor-scores-") as scratch:
        comparison = Comparison(Path(scratch))
        for _ in range(options.repeats):
            for case, values in comparison.turn():
                found.setdefault(case.name, []).append(values)
                print(case.name, {key: round(value, 3) for key, value in values.items()}, flush=True)
    rows = [summarise(name, turns) for name, turns in found.items()]
    inside, total = sum(row["inside"] for row in rows), sum(row["repeats"] for row in rows)
    notes = [f"{inside:.0f} of {total} measurements are inside their intervals."]
    notes += [f"Without rows over a network: {reason}." for reason in [why_not()] if reason]
    about = {**environment.describe(), "commit": environment.commit()}
    command = shlex.join(["python", "tools/plan_scores.py", *sys.argv[1:]])
    result = Result("plan-scores", about, rows, notes, command)
    write_bytes(options.out, (strict_json(result.as_dict(), indent=1) + "\n").encode())
    print("\n".join(notes))


if __name__ == "__main__":
    main()
