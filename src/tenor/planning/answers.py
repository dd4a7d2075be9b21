"""`tenor plan` as functions: from a source and settings to a result, and the predictions that the ledger keeps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tenor.errors import UsageError
from tenor.planning.experiments import Advice, advise
from tenor.planning.inputs.data_folder import read_frequencies, read_prepare_rate
from tenor.planning.inputs.measurement import Measurement, read_measurement
from tenor.planning.inputs.run_folder import measure_run
from tenor.planning.inputs.runs_table import read_table
from tenor.planning.plan import Plan, make_plan
from tenor.planning.questions import answer, answer_for_accuracy
from tenor.planning.result import PlanResult
from tenor.planning.settings import PlanSettings
from tenor.planning.table_plan import describe_table, plan_table
from tenor.training.runs.config import read_config


def read_source(source: Path, settings: PlanSettings) -> Measurement:
    """The measurement in a run folder or in a file of `tenor plan --measure`, with the frequencies of --data."""
    measured = measure_run(source) if source.is_dir() else read_measurement(source)
    if not settings.data:
        return measured
    if not source.is_dir():
        what = "--data has no effect with a measurement, which has its frequencies already"
        raise UsageError(what, remedy="omit --data, or plan from a run folder")
    data, config = Path(settings.data), read_config(source)
    frequencies = read_frequencies(data, config["model"], measured.data_sha256)
    tokens = frequencies.whole.mean_tokens * measured.batch_size
    return replace(measured, frequencies=frequencies, tokens=tokens, prepare_bytes_per_s=read_prepare_rate(data))


def plan_measurement(measured: Measurement, settings: PlanSettings) -> PlanResult:
    """The plan from a measurement, with answers and the most useful experiment."""
    with _countable(measured.source):
        plan = make_plan(measured, settings)
    found = answer(plan.rows, settings.limits())
    steps = f"{measured.costs.steps:,} steps with {measured.workers} worker{'s' * (measured.workers > 1)}"
    return PlanResult(
        source=f"{measured.source}: {measured.machine}, {steps}",
        target=plan.target,
        rows=plan.rows,
        chosen=found.row,
        answers=(found.text,),
        assumptions=plan.assumptions,
        quantities=dict(plan.quantities),
        advice=_advise(plan, found.row),
    )


@contextlib.contextmanager
def _countable(source: str) -> Iterator[None]:
    """Refuse figures that lead to numbers that no computer can hold: each is possible, but not all together."""
    try:
        yield
    except (ArithmeticError, ValueError) as error:
        what = f"has figures that are too large or too small for a plan ({type(error).__name__})"
        raise UsageError(what, where=source, remedy="measure again, or correct the figures") from error


def _advise(plan: Plan, chosen: int | None) -> Advice | None:
    """The experiment that helps the chosen row, or the largest one if none is chosen."""
    row = plan.rows[chosen if chosen is not None else -1]
    return advise(row, plan.shares[f"{row.machine}/{row.workers}"], plan.quantities)


def plan_runs(file: Path, settings: PlanSettings, asked: Sequence[int]) -> PlanResult:
    """The plan from a table of finished runs."""
    runs = read_table(file)
    if settings.accuracy and all(run.accuracy is None for run in runs):
        what = f"--accuracy {settings.accuracy:g} needs runs with an accuracy, and the table has none"
        raise UsageError(what, where=file, remedy="add a column `accuracy` with shares from 0 to 1")
    with _countable(str(file)):
        rows = plan_table(runs, settings, asked)
    found = answer_for_accuracy(rows, settings.limits(), settings.accuracy)
    answers = describe_table(rows, len(runs))
    return PlanResult(
        source=f"{file}: {len(runs)} runs",
        target="the runs of the table",
        rows=rows,
        chosen=found.row,
        answers=(*answers, found.text) if settings.under or settings.accuracy else tuple(answers),
        assumptions=(
            "Dollars are machines × dollars per hour × seconds / 3600, rounded to cents.",
            "Efficiency is relative to the fewest machines of the same kind.",
            "Predicted rows follow Amdahl's law, T(N) = serial + parallel / N, fitted to the runs of each machine.",
        ),
        quantities={},
        advice=None,
    )
