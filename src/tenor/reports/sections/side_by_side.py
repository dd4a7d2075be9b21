"""The section of several runs side by side: figures, settings that differ, curves, and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.evaluation.paired import PairedTest
from tenor.reports import page
from tenor.reports.drawing.plot import Plot
from tenor.reports.page import Section
from tenor.reports.plots.calibration import reliability_curves
from tenor.reports.plots.confusion import confusions
from tenor.reports.plots.curves import learning_curves, points
from tenor.reports.plots.money import Offer, accuracy_against_dollars
from tenor.reports.plots.scaling.convergence import thresholds
from tenor.reports.plots.scaling.overall import scaling
from tenor.reports.runs.comparison import RunComparison, compare_runs, differing_settings
from tenor.reports.runs.data import RunData
from tenor.reports.sections.behaviour import behaviours_side_by_side
from tenor.reports.sections.run import measures, spoken, three
from tenor.reports.settings import ReportSettings, RunsSettings
from tenor.reports.values import counted, number

MOST_PAIRS = 12  # runs that are compared with the first one, row by row
SHOWN_FLIPS = 8  # of the first pair


def side_by_side(runs: Sequence[RunData], settings: ReportSettings) -> Section:
    """Return everything that a page shows about several runs together."""
    named = named_runs(runs)
    split = "test" if all(run.metrics("test") for run in runs) else "valid"
    metrics = {name: run.metrics(split) for name, run in named.items()}
    classes = runs[0].classes if all(run.classes == runs[0].classes for run in runs) else []
    rows = [_as_row(name, run, split) for name, run in named.items()]
    drawings = [
        learning_curves(named, "epoch"),
        learning_curves(named, "seconds"),
        *_by_workers(rows, runs),
        reliability_curves(metrics, classes, spoken(split)) if classes else None,
        confusions(metrics, classes, spoken(split)) if classes else None,
        accuracy_against_dollars(_offers(rows, settings.price)) if settings.price else None,
    ]
    cards = [
        page.card("Figures", _figures(named, split), wide=True),
        page.card("Settings that differ", _settings(named), wide=True),
        *behaviours_side_by_side({name: run.behaviour for name, run in named.items() if run.behaviour}),
        *_pairs(named),
        *page.plots(drawings),
    ]
    return Section(f"{len(runs)} runs side by side", [page.faint(_notes(runs))], [page.grid(cards)])


def named_runs(runs: Sequence[RunData]) -> dict[str, RunData]:
    """Return the runs by name; runs with the same name get a number."""
    named: dict[str, RunData] = {}
    for run in runs:
        again = (f"{run.name} ({count})" for count in range(2, len(runs) + 2))
        name = run.name if run.name not in named else next(name for name in again if name not in named)
        named[name] = run
    return named


def _notes(runs: Sequence[RunData]) -> list[str]:
    notes = [note for run in runs for note in run.notes]
    if _are_on_one_machine(runs):
        return notes
    return ["The runs come from different machines: compare seconds and rates with care, and no speed-up.", *notes]


def _are_on_one_machine(runs: Sequence[RunData]) -> bool:
    return all(run.machine == runs[0].machine for run in runs)


def _figures(named: Mapping[str, RunData], split: str) -> str:
    shown = measures(*(run.metrics(split) for run in named.values()))
    head = ["run", "workers", "training rows", "epochs", *shown.values()]
    head += ["seconds", "seconds of word vectors", "samples/s", "processor"]
    rows = [
        [
            name,
            number(run.result.get("workers")),
            number(run.result.get("train_rows")),
            number(run.result.get("epochs")),
            *(three(run.metrics(split).get(measure)) for measure in shown),
            number(run.result.get("seconds")),
            number(run.result.get("vector_seconds")),
            number(run.result.get("samples_per_s")),
            str(run.machine.get("processor", "–")),
        ]
        for name, run in named.items()
    ]
    return page.table(head, rows, f"Metrics on the {spoken(split)} split.")


def _settings(named: Mapping[str, RunData]) -> str:
    found = differing_settings(list(named.values()))
    if not found:
        return page.faint(["All settings are the same."])
    rows = [[name, *(page.plain(_short(value)) for value in values)] for name, values in found.items()]
    return page.table(["setting", *named], rows)


def _short(value: Any) -> Any:
    """Return a hash as its first characters."""
    is_hash = isinstance(value, str) and len(value) == 64 and " " not in value
    return f"{value[:12]}…" if is_hash else value


def _pairs(named: Mapping[str, RunData]) -> list[str]:
    """Return a table of paired tests against the first run, and the flipped rows of the first pair."""
    (first_name, first), *others = named.items()
    found = [(name, _compare(first, run)) for name, run in others[:MOST_PAIRS]]
    rows = [
        [
            name,
            pair.test.rows,
            pair.test.flipped,
            pair.test.only_first,
            pair.test.only_second,
            _interval(pair.test),
            pair.test.p_mid,
            {"first": first_name, "second": name, "neither": "may be chance"}[pair.test.better],
        ]
        for name, pair in found
        if pair is not None and pair.test is not None
    ]
    if not rows:
        reasons = [f"{name}: {pair.reason}." for name, pair in found if pair is not None and pair.reason]
        return [page.card(f"Row by row against “{first_name}”", page.faint(reasons), wide=True)] if reasons else []
    head = ["run", "rows", "judged differently", f"only “{first_name}” right", "only this run right"]
    head += ["points of accuracy (95 %)", "mid-p", "better"]
    words = (
        "McNemar's test on the test rows that both runs judged. Below a mid-p of 0.05, the difference counts as real."
    )
    cards = [page.card(f"Row by row against “{first_name}”", page.table(head, rows, words), wide=True)]
    return cards + _flips(first_name, found)


def _interval(test: PairedTest) -> str:
    """Return the difference in points of accuracy with its interval; a minus is as wide as a plus."""
    points = [f"{100 * value:+.2f}".replace("-", "−") for value in (test.difference, test.low, test.high)]
    return f"{points[0]} ({points[1]} to {points[2]})"


def _compare(first: RunData, other: RunData) -> RunComparison | None:
    if first.folder is None or other.folder is None:
        return None
    return compare_runs(first.folder, other.folder, RunsSettings(flips=SHOWN_FLIPS))


def _flips(first: str, found: Sequence[tuple[str, RunComparison | None]]) -> list[str]:
    name, pair = found[0]
    if pair is None or not pair.flips:
        return []
    rows = [[f.place, f.label, f.first, f.second, f.first_probability, f.second_probability] for f in pair.flips]
    head = ["test row", "true class", f"“{first}” says", f"“{name}” says", f"p(true), “{first}”", f"p(true), “{name}”"]
    words = "Rows with the largest change of p(true), the probability of the true class."
    return [page.card(f"Judged differently by “{first}” and “{name}”", page.table(head, rows, words), wide=True)]


def _as_row(name: str, run: RunData, split: str) -> dict[str, Any]:
    """Return a run in the form of a row of a benchmark, for the plots that both share."""
    curve = points(run.epochs, "seconds", "valid", "accuracy")
    return {
        "name": name,
        "workers": number(run.result.get("workers")),
        "seconds": number(run.result.get("seconds")),
        "samples_per_s": number(run.result.get("samples_per_s")),
        "accuracy": number(run.metrics(split).get("accuracy")),
        "curve": {"seconds": [x for x, _ in curve], "accuracy": [y for _, y in curve]} if curve else None,
    }


def _by_workers(rows: Sequence[dict[str, Any]], runs: Sequence[RunData]) -> list[Plot]:
    """Return plots by the number of workers, if the runs differ in nothing else. A speed-up needs one machine."""
    counts = [row["workers"] for row in rows]
    differing = set(differing_settings(list(runs)))
    if None in counts or len(set(counts)) < 2 or len(set(counts)) < len(counts) or not differing <= _ABOUT_WORKERS:
        return []
    plots = thresholds(_goals(rows))  # the learning curves show the rest of the convergence
    if _are_on_one_machine(runs):
        cores = number(runs[0].machine.get("cores"))
        plain = [{key: row[key] for key in ("workers", "samples_per_s")} for row in rows]
        plots = [*scaling(plain, cores), *plots]
    return plots


_ABOUT_WORKERS = {"workers", "threads", "strategy", "seed", "backend", "balance", "shares", "profile"}


def _goals(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each run when it first reached the accuracy that all runs reach."""
    curves = [row["curve"] for row in rows]
    if not all(curves):
        return []
    goal = min(max(curve["accuracy"]) for curve in curves)
    reached = [next(i for i, value in enumerate(curve["accuracy"]) if value >= goal) for curve in curves]
    return [
        {
            "workers": row["workers"],
            f"epochs_to_a_validation_accuracy_of_{goal:.3f}": at + 1,
            f"seconds_to_a_validation_accuracy_of_{goal:.3f}": row["curve"]["seconds"][at],
        }
        for row, at in zip(rows, reached, strict=True)
    ]


def _offers(rows: Sequence[dict[str, Any]], price: float) -> list[Offer]:
    offers = []
    for row in rows:
        workers, seconds, accuracy = row["workers"], row["seconds"], row["accuracy"]
        if workers is not None and seconds is not None and accuracy is not None:
            name = f"{row['name']}, {counted(workers, 'worker')}"
            offers.append(Offer(name, price * workers * seconds / 3600, accuracy, accuracy, accuracy))
    return offers
