"""Which plots the page of a result has: scenario → function. To draw another scenario, write its plot and add a line.

A function gets the result and the settings of the report, and returns plots; None stands for a plot without data. A
scenario that is not listed here is drawn by `draw_any`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenor.reports.drawing.plot import Plot
from tenor.reports.plots import money
from tenor.reports.plots.accuracy import accuracy_against_seconds
from tenor.reports.plots.forecasts import parts_by_workers, time_by_workers
from tenor.reports.plots.medians import medians
from tenor.reports.plots.money import Offer
from tenor.reports.plots.scaling.convergence import convergence, thresholds
from tenor.reports.plots.scaling.overall import RATES, scaling
from tenor.reports.plots.scaling.stages import stage_scaling
from tenor.reports.plots.strategies import accuracy_curves, by_workers
from tenor.reports.result_file import ResultData, is_scaling
from tenor.reports.settings import ReportSettings
from tenor.reports.values import number, readable

Drawings = Sequence[Plot | None]

# The figure that says most about a row, and what it counts in
_MAIN = {
    "balance": ("share_of_ideal", "share of the ideal"),
    "busy": ("reviews_per_s", "reviews per second"),
    "plan-scores": ("measured_ms", "measured milliseconds of a step"),
    "large-batch": ("valid_accuracy", "validation accuracy"),
    "train": ("samples_per_s", "samples per second"),
    "serve": ("requests_per_s", "requests per second"),
    "pretrained": ("valid_accuracy", "validation accuracy"),
}


def draw_result(result: ResultData, settings: ReportSettings) -> Drawings:
    """Return the plots of a result."""
    return DRAWINGS.get(result.scenario, draw_any)(result, settings)


def draw_scaling(result: ResultData, settings: ReportSettings) -> Drawings:
    rows = result.rows
    plots = stage_scaling(rows, result.cores) if is_scaling(result) else scaling(rows, result.cores)
    return [*plots, *convergence(rows), *thresholds(rows), _cost(result, settings)]


def draw_strategies(result: ResultData, settings: ReportSettings) -> Drawings:
    rows = result.rows
    found = {count for row in rows if row.get("curve") and (count := number(row.get("workers"))) is not None}
    counts = sorted(found - {1.0})[:4] or [1.0]
    curves = [accuracy_curves(rows, count) for count in counts]
    over = convergence(rows) if len(counts) > 1 else []
    skip_gram = {"valid_loss": "validation loss", "similarity": "correlation with word similarities"}
    words = [medians(rows, key, unit) for key, unit in skip_gram.items()]
    return [*curves, *over, by_workers(rows, result.cores), *words, _cost(result, settings)]


def draw_embed(result: ResultData, settings: ReportSettings) -> Drawings:
    names = {"words_per_s": "words per second", "wordsim": "correlation with WordSim-353", "memory_mb": "megabytes"}
    names |= {"analogies": "share of right analogies"}
    return [medians(result.rows, key, unit) for key, unit in names.items()]


def draw_prepare(result: ResultData, settings: ReportSettings) -> Drawings:
    return [medians(result.rows, "mb_per_s", "megabytes per second", "wc", "wc -w, which only counts words")]


def draw_accuracy(result: ResultData, settings: ReportSettings) -> Drawings:
    return [accuracy_against_seconds(result.rows), medians(result.rows, "accuracy", "accuracy")]


def draw_plan(result: ResultData, settings: ReportSettings) -> Drawings:
    rows = result.rows
    plots = [time_by_workers(rows), parts_by_workers(rows)]
    return [*plots, money.dollars_against_time(rows), money.planned_accuracy(rows)]


def draw_any(result: ResultData, settings: ReportSettings) -> Drawings:
    """Return a plot of the main figure of the rows, or of the first rate that they have, or of the seconds."""
    names = {name: unit.replace("/s", " per second") for name, unit in RATES.items()} | {"seconds": "seconds"}
    found = next((pair for pair in names.items() if any(pair[0] in row for row in result.rows)), ("seconds", "seconds"))
    key, unit = _MAIN.get(result.scenario, found)
    return [medians(result.rows, key, unit), _cost(result, settings)]


def _cost(result: ResultData, settings: ReportSettings) -> Plot | None:
    """Accuracy against dollars, if rows have an accuracy and the settings a price per worker and hour."""
    return money.accuracy_against_dollars(priced(result, settings.price)) if settings.price else None


def priced(result: ResultData, price: float) -> list[Offer]:
    """The rows of a result that a price per worker and hour says something about."""
    offers = []
    for row in result.rows if DRAWINGS.get(result.scenario, draw_any) in _WITH_COST else []:
        workers, seconds, accuracy = (number(row.get(key)) for key in ("workers", "seconds", "test_accuracy"))
        if accuracy is None:
            accuracy = number(row.get("valid_accuracy"))
        if workers is not None and seconds is not None and accuracy is not None:
            name = readable(str(row.get("name")))[:60]
            offers.append(Offer(name, price * workers * seconds / 3600, accuracy, accuracy, accuracy))
    return offers


DRAWINGS: dict[str, Callable[[ResultData, ReportSettings], Drawings]] = {
    "scaling": draw_scaling,
    "strategies": draw_strategies,
    "prepare": draw_prepare,
    "embed": draw_embed,
    "plan": draw_plan,
    "accuracy": draw_accuracy,
}

_WITH_COST = (draw_scaling, draw_strategies, draw_any)
