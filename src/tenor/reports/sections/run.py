"""The section of one run: metrics and baseline, learning curves, calibration, workers, settings and machine."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from tenor.reports import page
from tenor.reports.page import Section
from tenor.reports.plots.behaviour import shares_by_kind
from tenor.reports.plots.calibration import reliability_curve
from tenor.reports.plots.confusion import confusion
from tenor.reports.plots.curves import learning_curve
from tenor.reports.plots.timeline import step_parts, timeline
from tenor.reports.plots.workers import over_steps, waiting
from tenor.reports.runs.data import RunData
from tenor.reports.sections.behaviour import behaviour_cards
from tenor.reports.settings import ReportSettings
from tenor.reports.values import counted, number
from tenor.training.traits import TASKS
from tenor.wording import dollars_text

MEASURES = {
    "accuracy": "Accuracy",
    "f1_macro": "Macro F1",
    "f1_weighted": "Weighted F1",
    "auc": "AUC",
    "calibration_error": "Calibration error",
}
_STARS = {"mean_absolute_error": "Mean absolute error"}  # of classes that are numbers, such as stars
_TILES = ("accuracy", "f1_macro", "auc")


def run_section(run: RunData, settings: ReportSettings) -> Section:
    """Return everything that a page shows about one run."""
    split = run.split
    drawings = [
        learning_curve(run, "epoch"),
        learning_curve(run, "seconds"),
        confusion(run.metrics(split), run.classes, spoken(split), _things(run)),
        reliability_curve(run.metrics(split), run.classes, spoken(split)),
        timeline(run),
        over_steps(run),
        waiting(run),
        step_parts(run.profile) if run.profile else None,
        shares_by_kind(run.behaviour) if run.behaviour else None,
    ]
    cards = [_summary(run, split), *_per_class(run.metrics(split), split), *page.plots(drawings)]
    cards += [page.card("Where a step goes (milliseconds)", _parts(run), wide=True)] if run.profile else []
    cards += behaviour_cards(run.behaviour) if run.behaviour else []
    cards += [page.card("Settings", page.pairs(run.config))] if run.config else []
    cards += [page.card("Environment", page.pairs(run.environment))] if run.environment else []
    head = [_origin(run), _verdict(run, split), page.faint(run.notes)]
    return Section(run.name, head, [page.tiles([*_figures(run, split), *_cost(run, settings.price)]), page.grid(cards)])


def measures(*metrics: Mapping[str, Any]) -> dict[str, str]:
    """The names and titles of the measures to show for some metrics."""
    return MEASURES | (_STARS if any(number(one.get(name)) is not None for one in metrics for name in _STARS) else {})


def spoken(split: str) -> str:
    """Return the name of a split as people say it."""
    return {"valid": "validation"}.get(split, split)


def three(value: Any) -> str | None:
    """Return a number with three decimals; None for anything else."""
    found = number(value)
    return None if found is None else f"{found:.3f}"


def _origin(run: RunData) -> str:
    hashed = run.result.get("weights_sha256")
    parts = ["Tenor run report", run.environment.get("date"), f"weights {str(hashed)[:12]}" if hashed else None]
    return f'<p class="faint">{escape(" · ".join(page.show(part) for part in parts if part))}</p>'


def _verdict(run: RunData, split: str) -> str:
    """Return the main result as one sentence."""
    metrics = run.metrics(split)
    accuracy, base = number(metrics.get("accuracy")), _base(metrics)
    if accuracy is None and run.result and run.settings.get("all_rows") is True:
        words = "This model has learned from all rows, so none is left to measure it on. Its rehearsal was measured"
        return f'<p class="lead">{words}: <code>tenor report {escape(page.show(run.name))}/rehearsal</code>.</p>'
    if accuracy is None:
        return '<p class="lead">This run has not been evaluated yet.</p>'
    words = (
        f"{accuracy:.1%} of {page.show(metrics.get('rows'))} {spoken(split)} {_things(run)} are classified correctly"
    )
    if (always := number(base.get("accuracy"))) is not None:
        words += f"; always predicting “{page.show(base.get('class'))}” would reach {always:.1%}"
    return f'<p class="lead">{escape(words)}.</p>'


def _things(run: RunData) -> str:
    task = run.settings.get("task")
    return str(task) if task in list(TASKS) else "reviews"


def _figures(run: RunData, split: str) -> list[tuple[str, str, str]]:
    metrics = run.metrics(split)
    base = _base(metrics)
    found = [
        (f"{MEASURES[name]}, {spoken(split)}", f"{value:.3f}", f"baseline {three(base.get(name)) or '–'}")
        for name in _TILES
        if (value := number(metrics.get(name))) is not None
    ]
    workers = run.result.get("workers")
    if (rate := number(run.result.get("samples_per_s"))) is not None:
        count = number(workers)
        note = page.show(workers) if count is None else counted(count, "worker")
        found.append(("Samples per second", f"{rate:,.0f}", note if workers else ""))
    if (seconds := number(run.result.get("seconds"))) is not None:
        note = f"{page.show(run.result.get('steps'))} steps"
        if (before := number(run.result.get("vector_seconds"))) is not None:
            note += f", after {before:,.0f} s of learning word vectors"
        found.append(("Training time", f"{seconds:,.0f} s", note))
    if (rows := number(run.result.get("train_rows"))) is not None:
        found.append(("Training rows", f"{rows:,.0f}", ""))
    return found


def _cost(run: RunData, price: float) -> list[tuple[str, str, str]]:
    """What the training cost, if the settings have a price per worker and hour."""
    workers, seconds = (number(run.result.get(name)) for name in ("workers", "seconds"))
    if not price or workers is None or seconds is None:
        return []
    return [
        ("Cost of training", dollars_text(price * workers * seconds / 3600), f"{price:g} dollars per worker and hour")
    ]


def _summary(run: RunData, split: str) -> str:
    """Return a table of the metrics on both splits, with the baseline of `split`."""
    valid, test, base = run.metrics("valid"), run.metrics("test"), _base(run.metrics(split))
    shown = measures(valid, test)
    rows = [[title, *(three(m.get(name)) for m in (valid, test, base))] for name, title in shown.items()]
    rows.append(["Rows", valid.get("rows"), test.get("rows"), None])
    words = f"The baseline always predicts the most frequent class of the {spoken(split)} split."
    return page.card("Summary", page.table(["", "validation", "test", "baseline"], rows, words))


def _per_class(metrics: dict[str, Any], split: str) -> list[str]:
    found = metrics.get("per_class")
    if not isinstance(found, dict):
        return []
    names = ("precision", "recall", "f1")
    rows = [
        [name, *(three(values.get(key)) for key in names), values.get("rows")]
        for name, values in found.items()
        if isinstance(values, dict)
    ]
    return [page.card(f"Metrics per class on the {spoken(split)} split", page.table(["class", *names, "rows"], rows))]


def _parts(run: RunData) -> str:
    """Return a table of the mean milliseconds of a step by worker and part."""
    assert run.profile is not None
    parts = list(dict.fromkeys(part for worker in run.profile.workers for part in worker.seconds))
    rows = [
        [worker.name, *(1e3 * worker.seconds.get(part, 0.0) for part in parts), 1e3 * sum(worker.seconds.values())]
        for worker in run.profile.workers
    ]
    words = f"Mean of steps {run.profile.first:,} to {run.profile.last:,}. trace.json shows them in Perfetto."
    return page.table(["", *parts, "step"], rows, words)


def _base(metrics: dict[str, Any]) -> dict[str, Any]:
    base = metrics.get("majority_baseline")
    return base if isinstance(base, dict) else {}
