"""A plan: for each number of workers and kind of machine the time, the money and the accuracy, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tenor.bench.network.spec import NetworkSpec, parse_network
from tenor.errors import UsageError
from tenor.planning.assumptions import Known, beyond, make_quantities, model_error
from tenor.planning.costs.learning import fit_curve
from tenor.planning.costs.noise_scale import samples_factor
from tenor.planning.inputs.measurement import Measurement
from tenor.planning.inputs.prices import Machine, find_machine, read_prices
from tenor.planning.quantities import SPAN, Factors, Forecast, Quantity, forecast
from tenor.planning.rows import Interval, PlanRow, mark_front
from tenor.planning.settings import TREE, PlanSettings
from tenor.planning.step import Setup, StepModel
from tenor.training.traits import strategy_name

MOST_DOUBLINGS = 10  # of the measured batch that --batch-size auto tries
PREPARE_ERROR = 0.3  # relative error of the time to prepare
_USUAL = NetworkSpec(1e9, 2e-4)  # for a machine whose entry in the price file names no network


@dataclass(frozen=True)
class Plan:
    """The rows, and what they rest on."""

    rows: tuple[PlanRow, ...]
    quantities: Mapping[str, Quantity]
    shares: Mapping[str, Mapping[str, float]]  # by row "machine/workers": the part of the variance by quantity
    target: str  # what is planned, in words
    assumptions: tuple[str, ...]


def make_plan(measured: Measurement, settings: PlanSettings) -> Plan:
    """Plan from a measurement.

    Raises:
        UsageError: A machine has no price or cannot be predicted from this measurement, or an option is wrong.
    """
    prices = read_prices(Path(settings.prices) if settings.prices else None)
    machines, is_same = _choose_machines(measured, settings, prices)
    network = settings.network or "; ".join(dict.fromkeys(str(machine.network or _USUAL) for machine in machines))
    known = Known(is_same, bool(settings.network), network)
    planner = _Planner(measured, settings, make_quantities(measured, known))
    rows, shares = [], {}
    for machine in machines:
        for workers in settings.worker_counts():
            row, parts = planner.row(machine, workers)
            rows.append(row)
            shares[f"{machine.name}/{workers}"] = parts
    described = planner.assumptions(machines, is_same)
    return Plan(mark_front(rows), planner.quantities, shares, planner.target, described)


def _choose_machines(
    measured: Measurement, settings: PlanSettings, prices: Mapping[str, Machine]
) -> tuple[list[Machine], bool]:
    """The machines to plan for, and whether they stand for the measured machine."""
    if settings.machine:
        chosen = [find_machine(dict(prices), name.strip()) for name in settings.machine.split(",")]
        if with_gpu := [machine.name for machine in chosen if machine.gpus]:
            what = f"--machine {with_gpu[0]} has GPUs, and their speed cannot be predicted from {measured.machine}"
            raise UsageError(what, remedy="train on 1, 2 and 4 of them, and plan --from a table of these runs")
        return chosen, False
    alike = [machine for machine in prices.values() if not machine.gpus and machine.cores >= measured.cores]
    if not alike:
        raise UsageError(
            f"no machine without GPUs and with {measured.cores} cores has a price",
            remedy="name one with --machine, or add it to a file and give --prices",
        )
    cheapest = min(alike, key=lambda machine: (machine.cores, machine.dollars_per_hour))
    return [replace(cheapest, cores=measured.cores)], True


class _Planner:
    """Predicts rows from one measurement with one set of options."""

    def __init__(self, measured: Measurement, settings: PlanSettings, quantities: Mapping[str, Quantity]) -> None:
        self.measured, self.settings, self.quantities = measured, settings, quantities
        self.steps = StepModel(measured, quantities)
        if settings.gigabytes:
            self.quantities = {**quantities, "prepare": _prepare_rate(measured)}
        self.reviews = settings.num_reviews() or measured.reviews
        self.epochs = settings.epochs or measured.epochs
        self.curve = fit_curve([(point.samples, point.accuracy) for point in measured.curve])
        if settings.accuracy and self.curve is None:
            what = f"--accuracy {settings.accuracy} needs a validation curve, and {measured.source} has none"
            raise UsageError(what, remedy="plan from a run with a validation split")

    @property
    def target(self) -> str:
        """What is planned, in words."""
        before = f", after preparing {self.settings.gigabytes:g} GB" if self.settings.gigabytes else ""
        if self.settings.accuracy:
            return f"{self.reviews:,} reviews until the validation accuracy is {self.settings.accuracy:g}{before}"
        return f"{self.epochs:g} epoch{'s' * (self.epochs != 1)} over {self.reviews:,} reviews{before}"

    def row(self, machine: Machine, workers: int) -> tuple[PlanRow, dict[str, float]]:
        """The prediction for a number of workers, and the share of its variance by quantity."""
        setup = self._setup(machine, workers)
        if self.settings.batch_size == "auto":
            setup = self._best_batch(setup)
        quantities = {**self.quantities, "model": Quantity(1.0, model_error(self.measured, workers), "formulas")}
        step = forecast(lambda factors: self._step(setup, factors), quantities)
        total = forecast(lambda factors: self._seconds(setup, factors), quantities)
        total = self._with_learning(total, setup)
        one = self._setup(machine, 1)
        efficiency = forecast(
            lambda factors: self._seconds(one, factors) / workers / self._seconds(setup, factors), quantities
        )
        samples, price = self._samples(setup, {}), float(machine.dollars_per_hour) * self._machines(setup) / 3600
        row = PlanRow(
            workers=workers,
            machine=machine.name,
            machines=self._machines(setup),
            hosts=setup.hosts,
            strategy=setup.strategy,
            batch_size=setup.batch_size,
            epochs=samples / self.reviews,
            step=_span(step),
            epoch=_span(step).scaled(self.reviews / setup.batch_size),
            total=_span(total),
            dollars=_span(total).scaled(price),
            efficiency=_span(efficiency),
            accuracy=self._accuracy(setup),
            parts=self.steps.predict(setup, {}),
            prepare=self._prepare_interval(workers),
            extrapolated=tuple(beyond(self.measured, setup, samples)),
        )
        return row, dict(total.shares)

    def _setup(self, machine: Machine, workers: int) -> Setup:
        settings, measured = self.settings, self.measured
        network = parse_network(settings.network) if settings.network else machine.network or _USUAL
        size = settings.batch_size
        return Setup(
            workers=workers,
            per_host=1 if settings.spread else max(1, machine.cores // measured.threads),
            cores=measured.threads if settings.spread else machine.cores,
            strategy=strategy_name(settings.strategy, workers),
            batch_size=measured.batch_size if size in ("", "auto") else int(size),
            network=network,
            slowness=settings.slowness() if workers > 1 else (),
            is_balanced=settings.balance,
            sync_every=settings.sync_every,
            is_same_data=self.reviews <= measured.reviews,
            sums=settings.sums,
        )

    def _machines(self, setup: Setup) -> int:
        """Machines to rent; a parameter server needs a core of its own."""
        return -(-(setup.workers + (setup.strategy == "async" and setup.workers > 1)) // setup.per_host)

    def _best_batch(self, setup: Setup) -> Setup:
        """The batch with which training is over first, among doublings of the measured batch."""
        sizes = [setup.batch_size << power for power in range(MOST_DOUBLINGS + 1)]
        fitting = [replace(setup, batch_size=size) for size in sizes if size <= max(setup.batch_size, self.reviews)]
        return min(fitting, key=lambda one: self._seconds(one, {}))

    def _step(self, setup: Setup, factors: Factors) -> float:
        return self.steps.predict(setup, factors).total * factors.get("model", 1.0)

    def _noise_scale(self, factors: Factors) -> float:
        return self.quantities["noise_scale"].value * factors.get("noise_scale", 1.0)

    def _needed(self, setup: Setup, factors: Factors) -> float:
        """Samples relative to those that the measured batch needs for the same loss."""
        noise = self._noise_scale(factors)
        return samples_factor(setup.batch_size, noise) / samples_factor(self.measured.batch_size, noise)

    def _samples(self, setup: Setup, factors: Factors, sigmas: float = 0.0) -> float:
        """Samples that training sees until it has the wanted accuracy, or the loss that the measured batch would reach.

        An accuracy that the curve never reaches takes infinitely many.
        """
        if self.settings.accuracy:
            assert self.curve is not None
            own = self.curve.samples_for(1.0 - self.settings.accuracy, sigmas)
        else:
            own = float(self.epochs * self.reviews)
        return own * self._needed(setup, factors)

    def _seconds(self, setup: Setup, factors: Factors) -> float:
        """Seconds of preparing, if --gigabytes asks for it, and of training."""
        samples = self._samples(setup, factors)
        if math.isinf(samples):  # the step is still known
            samples = float(self.epochs * self.reviews)
        return self._prepare(setup.workers, factors) + self._step(setup, factors) * samples / setup.batch_size

    def _with_learning(self, total: Forecast, setup: Setup) -> Forecast:
        """Widen an interval by what is not known about the curve, if an accuracy is wanted."""
        if not self.settings.accuracy:
            return total
        middle, low, high = (self._samples(setup, {}, sigmas) for sigmas in (0.0, -SPAN, SPAN))
        if math.isinf(middle):
            return replace(total, value=math.inf, low=math.inf if math.isinf(low) else total.low, high=math.inf)
        down, up = math.log(total.value / total.low), math.log(total.high / total.value)
        before = self._prepare(setup.workers, {})
        fewer, more = ((before + (total.value - before) * end / middle) / total.value for end in (low, high))
        highest = math.inf if math.isinf(high) else total.value * math.exp(math.hypot(up, math.log(more)))
        return replace(total, low=total.value / math.exp(math.hypot(down, math.log(fewer))), high=highest)

    def _effective(self, setup: Setup) -> float:
        """Samples with the measured batch that teach as much as the planned training."""
        samples = self._samples(setup, {})
        own = samples / self._needed(setup, {})
        return own if math.isfinite(own) else float(self.epochs * self.reviews)

    def _accuracy(self, setup: Setup) -> Interval | None:
        if self.curve is None:
            return None
        value, low, high = (1.0 - self.curve.error(self._effective(setup), sigmas) for sigmas in (0.0, SPAN, -SPAN))
        return Interval(value, low, high)

    def _prepare(self, workers: int, factors: Factors) -> float:
        """Seconds of `tenor prepare`; 0 without --gigabytes."""
        if not self.settings.gigabytes:
            return 0.0
        rate = self.quantities["prepare"].value * factors.get("prepare", 1.0)
        return self.settings.gigabytes * 1e9 / rate / workers

    def _prepare_interval(self, workers: int) -> Interval | None:
        seconds, factor = self._prepare(workers, {}), math.exp(SPAN * PREPARE_ERROR)
        return Interval(seconds, seconds / factor, seconds * factor) if seconds else None

    def assumptions(self, machines: Sequence[Machine], is_same: bool) -> tuple[str, ...]:
        """Sentences that a reader of the plan has to know."""
        measured = self.measured
        lines = [
            f"Seconds are those of {'`tenor prepare` and of ' if self.settings.gigabytes else ''}training steps, "
            "without learning word vectors, starting, validating and saving.",
            f"Steps were measured on {measured.machine}, with {measured.workers} worker(s) of {measured.threads} "
            f"thread(s) and batch {measured.batch_size}.",
            "A larger batch sees as many more samples as the gradient noise scale "
            f"({self.quantities['noise_scale'].value:,.0f} samples, {self.quantities['noise_scale'].source}) asks for, "
            "to reach the same loss.",
            "An interval should hold the measured value in 9 of 10 cases. It contains the errors of the fit, of the "
            "assumptions below and of the formulas, which are taken to be 5 % and more far from the measurement.",
        ]
        if is_same:
            name, price = machines[0].name, machines[0].dollars_per_hour
            lines.append(f"The measured machine is priced as {name} ({price} dollars an hour).")
        else:
            lines.append("A core of the planned machines is taken to be as fast as a measured core, give or take 25 %.")
        if self.settings.sums == TREE:
            lines.append(
                "Workers of several machines add up over a tree. Tenor's gloo uses a ring; MPI chooses for itself."
            )
        if self.measured.frequencies is None and measured.model.tables:
            lines.append(
                "Touched rows of other batch sizes follow Heaps' law; with --data they follow the word frequencies."
            )
        if self.settings.gigabytes:
            rate = f"{self.quantities['prepare'].value / 1e6:,.3g} MB/s"
            lines.append(
                "`tenor prepare` is taken to run with as many workers as training, each at the measured rate of "
                f"{rate}. The rate of a job that took less than some seconds is too low."
            )
        return tuple(lines)


def _prepare_rate(measured: Measurement) -> Quantity:
    """Bytes per second of one worker of `tenor prepare`.

    Raises:
        UsageError: The rate is not known.
    """
    if measured.prepare_bytes_per_s is None:
        what = f"--gigabytes needs the rate of `tenor prepare`, and {measured.source} does not have it"
        raise UsageError(what, remedy="add --data DATA, prepared by this version, or omit --gigabytes")
    return Quantity(measured.prepare_bytes_per_s, PREPARE_ERROR, "measured: job.json of the prepared data")


def _span(found: Forecast) -> Interval:
    return Interval(found.value, found.low, found.high)
