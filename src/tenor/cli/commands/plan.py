"""`tenor plan`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import UsageError
from tenor.planning.settings import LOCAL_STRATEGIES, PlanSettings
from tenor.settings import either, option_name
from tenor.wording import dollars_text, percent_text, seconds_text

if TYPE_CHECKING:
    from tenor.planning.ledger import Score
    from tenor.planning.result import PlanResult
    from tenor.planning.rows import Interval, PlanRow


@command(example="tenor plan RUN --workers 1-64 --under 1h", settings=PlanSettings)
def plan(
    console: Console,
    settings: PlanSettings,
    given: frozenset[str],
    source: Annotated[
        Path | None,
        typer.Argument(
            help="Run folder, or file of `tenor plan --measure --out`. With --measure: prepared data. With --score: "
            "folder of runs.",
            metavar="[SOURCE]",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--from", help="Plan from a table of finished runs (CSV or JSON: machine, count, seconds)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Also write the plan to this JSON file, and an HTML page beside it. With --measure: write the "
            "measurement, from which other plans can be made.",
        ),
    ] = None,
) -> None:
    """Predict time, money and accuracy of training on any number of workers, from a run or a one-minute measurement.

    Every figure comes with an interval that should hold 9 of 10 times. Predictions are kept in a ledger.
    """
    from tenor.store.atomic import check_target

    _refuse(settings, given, source, runs, out)
    if out is not None:
        if out.suffix == ".html":
            raise UsageError(f"--out cannot be {out.name!r}", remedy="name a .json file; the page is written beside it")
        check_target(out)
    if settings.score:
        _show_scores(console, source or Path(), settings)
        return
    result = _make(console, settings, given, source, runs, out)
    result = replace(result, command=shlex.join(["tenor", *sys.argv[1:]]))
    if out is not None and not settings.measure:
        import tenor
        from tenor.store.atomic import write_bytes
        from tenor.store.strict import strict_json

        write_bytes(out, (strict_json(result.as_dict(), indent=1) + "\n").encode())
        tenor.report(out, out.with_suffix(".html"))
    console.result(result.as_dict(), plan_text(result))


# The options that have an effect with a table of runs and with --score; the others are about a plan from a run.
_WITH_TABLE = {"workers", "prices", "under", "accuracy"}
_WITH_SCORE = {"score", "ledger"}


def _refuse(
    settings: PlanSettings, given: frozenset[str], source: Path | None, runs: Path | None, out: Path | None
) -> None:
    """Refuse sources that contradict each other, and options without effect."""
    ways = {"--measure": settings.measure, "--from": runs is not None, "--score": settings.score}
    chosen = [name for name, is_given in ways.items() if is_given]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} cannot be combined with {chosen[1]}", remedy="give one of them")
    if runs is not None and source is not None:
        raise UsageError(f"--from takes no SOURCE (got {source})", remedy="omit one of them")
    if source is None and not chosen:
        remedy = "give a run folder, or one of --measure, --from FILE and --score"
        raise UsageError("nothing to plan from", remedy=remedy)
    if runs is not None and settings.write:
        raise UsageError("--write needs a plan from a run, not --from", remedy="give a run folder instead of --from")
    if settings.score and out is not None:
        raise UsageError("--out has no effect with --score", remedy="add --json and redirect the output to a file")
    without = given - _WITH_TABLE if runs is not None else given - _WITH_SCORE if settings.score else frozenset()
    without |= {"data"} & given if settings.measure else set()
    if without:
        name, mode = option_name(min(without)), chosen[0]
        remedy = "give the prepared data as SOURCE" if mode == "--measure" else f"omit {name}, or plan from a run"
        raise UsageError(f"{name} has no effect with {mode}", remedy=remedy)
    if "epochs" in given and settings.accuracy:
        what = "--epochs has no effect with --accuracy, which plans as many epochs as that takes"
        raise UsageError(what, remedy="omit one of them")
    if "sync_every" in given and settings.strategy not in LOCAL_STRATEGIES:
        what = f"--sync-every has no effect with --strategy {settings.strategy}"
        raise UsageError(what, remedy=f"add --strategy {either(LOCAL_STRATEGIES)}, or omit it")


def _make(
    console: Console,
    settings: PlanSettings,
    given: frozenset[str],
    source: Path | None,
    runs: Path | None,
    out: Path | None,
) -> PlanResult:
    from tenor.planning.answers import plan_measurement, plan_runs, read_source
    from tenor.planning.ledger import keep_predictions, ledger_file

    if runs is not None:
        return plan_runs(runs, settings, settings.worker_counts() if "workers" in given else ())
    if settings.measure:
        from tenor.planning.inputs.measurement import write_measurement
        from tenor.planning.inputs.measuring import measure_machine

        measured = measure_machine(source, console.progress())
        if out is not None:
            write_measurement(measured, out)
            measured = replace(measured, source=str(out))
    else:
        assert source is not None
        measured = read_source(source, settings)
    result = plan_measurement(measured, settings)
    if not settings.measure or out is not None or settings.ledger:
        file = ledger_file(str(out) if settings.measure and out else measured.source, settings)
        try:
            keep_predictions(file, measured, settings, result.rows)
        except OSError as error:
            console.say(f"tenor: predictions are not kept: {file}: {error.strerror}")
    if settings.write:
        result = _write_job(result, settings, measured.settings, measured.threads)
    return result


def _write_job(result: PlanResult, settings: PlanSettings, trained: dict[str, Any] | None, threads: int) -> PlanResult:
    from tenor.planning.job_files import write_job

    if result.chosen is None:
        raise UsageError(
            f"--write {settings.write} has no plan to write: {result.answers[-1]}", remedy="change the limit"
        )
    path = write_job(result.rows[result.chosen], settings, trained, threads)
    return replace(result, notes=(*result.notes, f"Wrote {path}."))


def _show_scores(console: Console, folder: Path, settings: PlanSettings) -> None:
    from tenor.planning.ledger import score

    scores = score(folder, Path(settings.ledger) if settings.ledger else None)
    values = {"rows": [one.as_dict() for one in scores], **_summary(scores)}
    head = ["run", "workers", "strategy", "predicted", "interval", "measured", "error", "inside"]
    rows = [
        [
            one.run,
            one.workers,
            one.strategy,
            seconds_text(one.predicted),
            f"{seconds_text(one.low)} to {seconds_text(one.high)}",
            seconds_text(one.measured),
            f"{one.error:+.1%}",
            one.is_inside,
        ]
        for one in scores
    ]
    if not scores:
        console.result(values, "No run in this folder has a prediction that was made before it.")
        return
    text = f"{values['inside']} of {values['runs']} runs are inside their intervals; mean error {values['error']:.1%}"
    console.result(values, f"{table(head, rows)}\n\n{text}")


def _summary(scores: list[Score]) -> dict[str, Any]:
    inside = sum(one.is_inside for one in scores)
    error = sum(abs(one.error) for one in scores) / len(scores) if scores else None
    return {"runs": len(scores), "inside": inside, "error": error}


def plan_text(result: PlanResult) -> str:
    """The plan for a terminal."""
    columns = [
        (title, show)
        for title, show in _COLUMNS
        if title not in _OPTIONAL or any(show(row) is not None for row in result.rows)
    ]
    rows = [
        [*(show(row) for _, show in columns), _marks(row, place == result.chosen)]
        for place, row in enumerate(result.rows)
    ]
    head = [*(title for title, _ in columns), ""]
    marks = "P: no other row is both faster and cheaper.  E: beyond 4 × what was measured.  ←: chosen."
    parts = [f"Plan for {result.target}", f"from {result.source}", "", table(head, rows), "", marks, ""]
    parts += [*result.answers, ""]
    if result.advice is not None:
        advice = result.advice
        parts += [
            f"To narrow the interval from × or ÷ {advice.before:.2f} to × or ÷ {advice.after:.2f}: {advice.text}.",
            "",
        ]
    parts += [*result.notes, *(f"- {line}" for line in result.assumptions)]
    return "\n".join(parts)


_COLUMNS: tuple[tuple[str, Callable[[PlanRow], Any]], ...] = (
    ("workers", lambda row: row.workers),
    ("machines", lambda row: f"{row.machines} × {row.machine}"),
    ("batch", lambda row: row.batch_size),
    ("step", lambda row: seconds_text(row.step.value) if row.step else None),
    ("prepare", lambda row: seconds_text(row.prepare.value) if row.prepare else None),
    ("total", lambda row: seconds_text(row.total.value)),
    ("interval", lambda row: _interval(row.total)),
    ("dollars", lambda row: dollars_text(row.dollars.value)),
    ("efficiency", lambda row: percent_text(row.efficiency.value)),
    ("accuracy", lambda row: f"{row.accuracy.value:.3f}" if row.accuracy else None),
)
_OPTIONAL = ("batch", "step", "prepare", "accuracy")  # columns that are left out where no row has a value


def _marks(row: PlanRow, is_chosen: bool) -> str:
    known = (("P", row.is_pareto), ("E", bool(row.extrapolated)), ("←", is_chosen))
    return " ".join(mark for mark, is_so in known if is_so)


def _interval(span: Interval) -> str:
    return "measured" if span.low == span.high else f"{seconds_text(span.low)} to {seconds_text(span.high)}"
