"""Measure this machine for about one minute: one worker, then two, on prepared data or generated reviews."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.environment import usable_cores
from tenor.planning.inputs.data_folder import read_frequencies, read_prepare_rate
from tenor.planning.inputs.measurement import Measurement
from tenor.planning.inputs.run_folder import measure_run
from tenor.preparation.job.prepare import prepare
from tenor.progress import Progress
from tenor.store.manifest import Manifest
from tenor.training.launching.launch import train
from tenor.training.recipe import DataFacts, complete
from tenor.training.runs.config import read_config
from tenor.training.settings import NO_VECTORS, TrainSettings

SECONDS = 18.0  # of training in each run
REVIEWS = 20_000  # generated if there is no data
EPOCHS = 1000  # more than fit into the time


def measure_machine(data: Path | None, progress: Progress, seconds: float = SECONDS) -> Measurement:
    """Train with one worker and, if there is a second core, with two; return what was measured.

    Args:
        data: Prepared data; None generates and prepares some.
        progress: Shows what is going on.
        seconds: Time of each run.
    """
    with tempfile.TemporaryDirectory(prefix="tenor-plan-") as scratch:
        folder = Path(scratch)
        if data is None:
            progress.say(f"generating and preparing {REVIEWS:,} reviews")
            generate(folder / "reviews.jsonl", GenerateSettings(rows=REVIEWS))
            data = folder / "data"
            prepare([folder / "reviews.jsonl"], data)
        found = []
        for workers in (1, 2)[: usable_cores()]:
            progress.say(f"training with {workers} worker{'s' * (workers > 1)} for {seconds:g} s")
            out = folder / f"run-{workers}"
            settings = TrainSettings(workers=workers, threads=1, epochs=EPOCHS, max_seconds=seconds, test=False)
            train(data, out, replace(settings, embeddings=NO_VECTORS))  # a step costs the same wherever vectors start
            found.append(measure_run(out))
        config = read_config(folder / "run-1")
        frequencies = read_frequencies(data, config["model"], "")
        rate = read_prepare_rate(data)
        chosen = complete(TrainSettings(), DataFacts.of(Manifest.load(data)))
    joined = join_runs(found)
    return replace(
        joined,
        source="this machine",
        command="tenor plan --measure",
        epochs=chosen.epochs,
        settings={**(joined.settings or {}), "embeddings": chosen.embeddings},
        frequencies=frequencies,
        prepare_bytes_per_s=rate,
    )


def join_runs(found: list[Measurement]) -> Measurement:
    """One measurement from runs with one and with more workers: costs of the first, exchange and noise of the last."""
    first, last = found[0], found[-1]
    if first is last:
        return first
    costs = replace(first.costs, exchange_s=last.costs.exchange_s, exchange_workers=last.costs.exchange_workers)
    curve = max((one.curve for one in found), key=lambda points: points[-1].samples if points else 0)
    return replace(first, costs=costs, noise_scale=last.noise_scale, curve=curve)
