"""The figures of a measurement, which a stranger may have written: what is wrong with them, if anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tenor.engines.records import to_json
from tenor.planning.costs.touched_rows import LengthGroup
from tenor.planning.inputs.measurement import Measurement, ModelSize, StepCosts

SMALLEST, LARGEST = 1e-12, 1e15  # numbers with which a plan can be computed
MOST_CORES = 1_000_000
MOST_NOISE = 100_000
MOST_ERROR = 10.0  # relative


def find_wrong_figure(found: Measurement) -> str | None:
    """What is wrong with the figures of a measurement, in words; None if a plan can be computed from them."""
    return next(_wrong_figures(found), None)


def _wrong_figures(found: Measurement) -> Iterator[str]:
    whole = {"workers": found.workers, "threads": found.threads, "cores": found.cores, "batch_size": found.batch_size}
    whole |= {"reviews": found.reviews, "epochs": found.epochs, "steps": found.costs.steps}
    for name, value in {**whole, "tokens": found.tokens, "padding": found.padding}.items():
        if not 0 < value <= LARGEST:
            yield f"{name} is {value!r:.40}, not a number above 0" + (f" up to {LARGEST:g}" if value > 0 else "")
    if max(found.workers, found.threads, found.cores) > MOST_CORES:
        yield f"it has more than {MOST_CORES:,} workers, threads or cores"
    if not isinstance(found.environment.get("machine", {}), dict):
        yield "its machine is not an object"
    yield from _wrong_costs(found.costs)
    yield from _wrong_sizes(found.model)
    if found.noise_scale is not None and not SMALLEST <= found.noise_scale.value <= LARGEST:
        yield "the noise scale is not above 0"
    if any(later.samples <= before.samples for before, later in pairwise(found.curve)):
        yield "the points of the validation curve are not in order"
    if any(point.samples < 1 or not 0 <= point.accuracy <= 1 for point in found.curve):
        yield "an accuracy is not between 0 and 1, or after no samples"
    if (known := found.frequencies) is not None:
        if not known.groups or any(set(group.spectra) != set(known.whole.spectra) for group in known.groups):
            yield "its frequencies are not of the same tables"
        for group in (*known.groups, known.whole):
            yield from _wrong_frequencies(group)
    yield from _wrong_numbers(to_json(found))


def _wrong_costs(costs: StepCosts) -> Iterator[str]:
    lines = (costs.compute, costs.update, costs.load)
    if any(number < 0 for line in lines for number in (line.fixed, line.slope, line.error)):
        yield "a cost is negative"
    if any(line.fixed + line.slope <= 0 or line.error > MOST_ERROR for line in lines):
        yield "a cost is 0, or its error is too large"
    if not costs.noise or not min(costs.noise) >= SMALLEST or len(costs.noise) > MOST_NOISE:
        yield "its relative compute times are missing, too many or not above 0"
    if costs.exchange_workers < 1 or (costs.exchange_s or 0) < 0:
        yield "the exchange of gradients has no workers or negative seconds"


def _wrong_sizes(model: ModelSize) -> Iterator[str]:
    for name, table in model.tables.items():
        if table.rows < 1 or table.row_bytes < 0 or not 0 <= table.touched <= table.rows:
            yield f"the table {name!r:.40} has no rows, or fewer rows than a batch touches"
    if model.dense_bytes < 0:
        yield "the model has negative bytes"


def _wrong_frequencies(group: LengthGroup) -> Iterator[str]:
    if group.reviews < 1 or group.mean_tokens <= 0:
        yield "it has frequencies of no reviews"
    for spectrum in group.spectra.values():
        fits = all(0 < count <= group.reviews for count in spectrum.reviews) and min(spectrum.rows, default=0) >= 0
        if len(spectrum.reviews) != len(spectrum.rows) or not fits:
            yield "its frequencies contradict each other"


def _wrong_numbers(value: Any) -> Iterator[str]:
    """Numbers anywhere that are too large."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _wrong_numbers(inner)
    elif isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
        yield f"{value!r:.40} is not a number up to {LARGEST:g}"
