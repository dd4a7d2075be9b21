"""The HTML report of a run: metrics and baseline, learning curves, workers, settings and machine."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.reports import page, plots, workers
from tenor.reports.run_data import RunData, read_run
from tenor.reports.values import number
from tenor.store.atomic import check_target, write_bytes
from tenor.training.traits import TASKS

_MEASURES = (("accuracy", "Accuracy"), ("f1_macro", "Macro F1"), ("f1_weighted", "Weighted F1"), ("auc", "AUC"))


def write_report(run: Path, out: Path, scaling: Sequence[dict[str, Any]] = ()) -> Path:
    """Write one self-contained HTML file about a run.

    Args:
        run: The run folder.
        out: The file to write.
        scaling: Rows of `tenor bench scaling` with `workers` and `samples_per_s`; they add a plot.

    Returns:
        The path of the file.

    Raises:
        RunError: The run cannot be read, or the file cannot be written.
        UsageError: `out` is not a path that can be written.
    """
    data, out = read_run(Path(run)), Path(out)
    check_target(out)
    try:
        write_bytes(out, render(data, scaling).encode("utf-8", "replace"))
    except OSError as error:
        raise RunError(
            f"cannot write the report: {error.strerror}", where=out, remedy="choose another path with --out"
        ) from error
    return out


def render(run: RunData, scaling: Sequence[dict[str, Any]] = ()) -> str:
    """Return the whole page."""
    split = "test" if run.metrics("test") else "valid"
    drawings = [
        plots.learning_curve(run, "epoch"),
        plots.learning_curve(run, "seconds"),
        plots.confusion(run.metrics(split), run.classes, _spoken(split), _things(run)),
        plots.scaling(scaling),
        plots.waiting(run, wide=bool(scaling)),
        workers.over_steps(run),
    ]
    cards = [_summary(run, split), *_per_class(run.metrics(split), split)]
    cards += [page.plot(drawing) for drawing in drawings if drawing is not None]
    cards += [page.card("Settings", page.pairs(run.config))] if run.config else []
    cards += [page.card("Environment", page.pairs(run.environment))] if run.environment else []
    body = [
        f"<header><h1>{escape(run.name)}</h1>{_origin(run)}{_verdict(run, split)}{_notes(run)}</header>",
        page.tiles(_figures(run, split)),
        f'<div class="grid">{"".join(cards)}</div>',
        "<footer>Written by Tenor. This page is self-contained: it loads nothing from the network.</footer>",
    ]
    return page.page(f"{run.name} – Tenor run report", body)


def _origin(run: RunData) -> str:
    hashed = run.result.get("weights_sha256")
    parts = ["Tenor run report", run.environment.get("date"), f"weights {str(hashed)[:12]}" if hashed else None]
    return f'<p class="faint">{escape(" · ".join(page.show(part) for part in parts if part))}</p>'


def _notes(run: RunData) -> str:
    return "".join(f'<p class="faint">{escape(note)}</p>' for note in run.notes)


def _verdict(run: RunData, split: str) -> str:
    """Return the main result as one sentence."""
    metrics = run.metrics(split)
    accuracy, base = number(metrics.get("accuracy")), _base(metrics)
    if accuracy is None:
        return '<p class="lead">This run has not been evaluated yet.</p>'
    words = (
        f"{accuracy:.1%} of {page.show(metrics.get('rows'))} {_spoken(split)} {_things(run)} are classified correctly"
    )
    if (always := number(base.get("accuracy"))) is not None:
        words += f"; always predicting “{page.show(base.get('class'))}” would reach {always:.1%}"
    return f'<p class="lead">{escape(words)}.</p>'


def _things(run: RunData) -> str:
    settings = run.config.get("settings")
    task = settings.get("task") if isinstance(settings, dict) else None
    return task if task in list(TASKS) else "reviews"


def _figures(run: RunData, split: str) -> list[tuple[str, str, str]]:
    metrics = run.metrics(split)
    base = _base(metrics)
    found = [
        (f"{title}, {_spoken(split)}", f"{value:.3f}", f"baseline {_three(base.get(name)) or '–'}")
        for name, title in _MEASURES
        if name != "f1_weighted" and (value := number(metrics.get(name))) is not None
    ]
    workers = run.result.get("workers")
    if (rate := number(run.result.get("samples_per_s"))) is not None:
        note = f"{page.show(workers)} worker{'s' if workers != 1 else ''}" if workers else ""
        found.append(("Samples per second", f"{rate:,.0f}", note))
    if (seconds := number(run.result.get("seconds"))) is not None:
        found.append(("Training time", f"{seconds:,.0f} s", f"{page.show(run.result.get('steps'))} steps"))
    return found


def _summary(run: RunData, split: str) -> str:
    """Return a table of the metrics on both splits, with the baseline of `split`."""
    valid, test, base = run.metrics("valid"), run.metrics("test"), _base(run.metrics(split))
    rows = [[title, *(_three(m.get(name)) for m in (valid, test, base))] for name, title in _MEASURES]
    rows.append(["Rows", valid.get("rows"), test.get("rows"), None])
    words = f"The baseline always predicts the most frequent class of the {_spoken(split)} split."
    return page.card("Summary", page.table(["", "validation", "test", "baseline"], rows, words))


def _per_class(metrics: dict[str, Any], split: str) -> list[str]:
    found = metrics.get("per_class")
    if not isinstance(found, dict):
        return []
    names = ("precision", "recall", "f1")
    rows = [
        [name, *(_three(values.get(key)) for key in names), values.get("rows")]
        for name, values in found.items()
        if isinstance(values, dict)
    ]
    return [page.card(f"Metrics per class on the {_spoken(split)} split", page.table(["class", *names, "rows"], rows))]


def _base(metrics: dict[str, Any]) -> dict[str, Any]:
    base = metrics.get("majority_baseline")
    return base if isinstance(base, dict) else {}


def _three(value: Any) -> str | None:
    found = number(value)
    return None if found is None else f"{found:.3f}"


def _spoken(split: str) -> str:
    return {"valid": "validation"}.get(split, split)
