"""The report of a run: what it reached beside the baseline, how it got there, with which settings, on what machine."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.reports import page, plots, workers
from tenor.reports.run_data import RunData, number, read_run
from tenor.store.atomic import write_bytes

_MEASURES = (("accuracy", "Accuracy"), ("f1_macro", "Macro F1"), ("f1_weighted", "Weighted F1"), ("auc", "AUC"))


def write_report(run: Path, out: Path, scaling: Sequence[dict[str, Any]] = ()) -> Path:
    """Write one self-contained HTML file about the run folder `run`; `scaling` rows have workers and samples_per_s."""
    document = render(read_run(Path(run)), scaling)
    out = Path(out)
    try:
        write_bytes(out, document.encode())
    except OSError as error:
        raise RunError(
            f"cannot write the report: {error.strerror}", where=out, remedy="choose another --out"
        ) from error
    return out


def render(run: RunData, scaling: Sequence[dict[str, Any]] = ()) -> str:
    """The whole document."""
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
        f"<header><h1>{escape(run.name)}</h1>{_origin(run)}{_verdict(run, split)}</header>",
        page.tiles(_figures(run, split)),
        f'<div class="grid">{"".join(cards)}</div>',
        "<footer>Written by tenor. This page is complete in itself: it loads nothing from anywhere.</footer>",
    ]
    return page.page(f"{run.name} – Tenor run report", body)


def _origin(run: RunData) -> str:
    hashed = run.result.get("weights_sha256")
    parts = ["Tenor run report", run.environment.get("date"), f"weights {str(hashed)[:12]}" if hashed else None]
    return f'<p class="faint">{escape(" · ".join(str(part) for part in parts if part))}</p>'


def _verdict(run: RunData, split: str) -> str:
    """The one sentence to take away."""
    metrics = run.metrics(split)
    accuracy, base = number(metrics.get("accuracy")), _base(metrics)
    if accuracy is None:
        return '<p class="lead">This run has no evaluation yet.</p>'
    words = f"{accuracy:.1%} of {page.show(metrics.get('rows'))} {_spoken(split)} {_things(run)} are judged rightly"
    if (always := number(base.get("accuracy"))) is not None:
        words += f"; always answering “{base.get('class')}” gets {always:.1%}"
    return f'<p class="lead">{escape(words)}.</p>'


def _things(run: RunData) -> str:
    settings = run.config.get("settings")
    return "points" if isinstance(settings, dict) and settings.get("task") == "points" else "reviews"


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
        beside = f"{workers} worker{'s' if workers != 1 else ''}" if workers else ""
        found.append(("Samples a second", f"{rate:,.0f}", beside))
    if (seconds := number(run.result.get("seconds"))) is not None:
        found.append(("Training time", f"{seconds:,.0f} s", f"{page.show(run.result.get('steps'))} steps"))
    return found


def _summary(run: RunData, split: str) -> str:
    """Each measure on both splits beside the baseline of the judged one."""
    valid, test, base = run.metrics("valid"), run.metrics("test"), _base(run.metrics(split))
    rows = [[title, *(_three(m.get(name)) for m in (valid, test, base))] for name, title in _MEASURES]
    rows.append(["Rows", valid.get("rows"), test.get("rows"), None])
    words = f"The baseline always answers with the most frequent class of the {_spoken(split)} split."
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
    return [page.card(f"By class on the {_spoken(split)} split", page.table(["class", *names, "rows"], rows))]


def _base(metrics: dict[str, Any]) -> dict[str, Any]:
    base = metrics.get("majority_baseline")
    return base if isinstance(base, dict) else {}


def _three(value: Any) -> str | None:
    found = number(value)
    return None if found is None else f"{found:.3f}"


def _spoken(split: str) -> str:
    return {"valid": "validation"}.get(split, split)
