"""The seconds of one step on any team of workers: the formulas of `costs` and the simulation, put together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tenor.bench.network.spec import NetworkSpec
from tenor.planning.costs.communication import (
    ring_bytes,
    ring_seconds,
    shared_memory_seconds,
    tree_seconds,
)
from tenor.planning.costs.compute import largest_share
from tenor.planning.costs.overlap import overlapped_seconds
from tenor.planning.costs.stragglers import slowest_of
from tenor.planning.costs.touched_rows import scaled_rows
from tenor.planning.inputs.measurement import Measurement
from tenor.planning.quantities import Factors, Quantity
from tenor.planning.settings import LOCAL_STRATEGIES, RING, TREE
from tenor.planning.simulation import (
    Link,
    RingLink,
    Server,
    SimulatedTeam,
    TreeLink,
    simulate_local,
    simulate_server,
    simulate_synchronous,
)
from tenor.training.balancing.costs import Costs

Floats = NDArray[np.float64]

SIMULATED_STEPS = 24  # of a parameter server
EXPONENTS = {"wide.ngrams": 0.85}  # by which touched rows grow with the batch, if no frequencies are known
USUAL_EXPONENT = 0.55
PLANNED = ("single", "allreduce", *LOCAL_STRATEGIES, "hogwild", "async")
ROWS_BY_TOKENS = 0.8  # power of the tokens with which the touched rows of batches of one size grow
TALLIES = 8  # numbers that are added up with every gradient, beside those of each worker
PER_WORKER = 5


@dataclass(frozen=True)
class Setup:
    """What is predicted.

    Attributes:
        workers: Computing workers.
        per_host: Workers on each machine; the last one may have fewer.
        cores: Cores of each machine.
        strategy: How the workers combine their updates.
        batch_size: Global batch.
        network: Between machines.
        slowness: Relative compute time of each worker, repeated if there are more workers; empty for equal ones.
        is_balanced: Whether shares follow the speeds of the workers.
        sync_every: Steps between two exchanges of local strategies.
        is_same_data: Whether batches are drawn from the measured data, and not from more data like it.
        sums: How workers of several machines add up: `ring` or `tree`.
    """

    workers: int
    per_host: int
    cores: int
    strategy: str
    batch_size: int
    network: NetworkSpec
    slowness: tuple[float, ...] = ()
    is_balanced: bool = False
    sync_every: int = 16
    is_same_data: bool = True
    sums: str = RING

    @property
    def hosts(self) -> int:
        return -(-self.workers // self.per_host)

    @property
    def relative(self) -> Floats:
        """(workers,) relative compute times."""
        return np.resize(np.array(self.slowness or (1.0,)), self.workers)


@dataclass(frozen=True)
class StepSeconds:
    """A step and its parts; parts may overlap, so that they add up to more than the step."""

    total: float
    compute: float  # of the slowest worker
    exchange: float
    update: float
    bytes_sent: float  # by one worker; by and to the server with a parameter server
    by_tokens: float = 0.0  # by how many percent the step grows if its batch has 1 % more tokens


def touched_rows(measured: Measurement, table: str, batch: float, setup: Setup, batches: int = 1) -> float:
    """Rows of a table that some batches touch together: from frequencies, or from the measured rows and Heaps' law."""
    known = measured.frequencies
    if known is not None and table in known.whole.spectra:
        if batches > 1:
            return known.together(table, batch * batches, setup.is_same_data)
        return known.expected(table, batch, setup.is_same_data)
    size = measured.model.tables[table]
    factor = batch * batches / measured.batch_size
    return scaled_rows(size.touched, factor, size.rows, EXPONENTS.get(table, USUAL_EXPONENT))


def row_bytes(measured: Measurement, setup: Setup, batches: int = 1) -> float:
    """Bytes of the touched rows of all tables."""
    return sum(
        touched_rows(measured, name, setup.batch_size, setup, batches) * size.row_bytes
        for name, size in measured.model.tables.items()
    )


def payload_bytes(measured: Measurement, setup: Setup, batches: int = 1, item: int = 4) -> float:
    """Bytes that are added up over the workers: dense weights, touched rows, and the tallies."""
    tallies = item * (TALLIES + PER_WORKER * setup.workers)
    return measured.model.dense_bytes + row_bytes(measured, setup, batches) + tallies


class StepModel:
    """Predicts steps from a measurement.

    Args:
        measured: What was measured.
        quantities: The numbers that are not part of the measurement, by name (see `assumptions`).
    """

    def __init__(self, measured: Measurement, quantities: Mapping[str, Quantity]) -> None:
        self.measured, self.quantities = measured, quantities
        self.noise = np.array(measured.costs.noise)
        self._rows: dict[tuple[Setup, int], float] = {}  # touched rows do not depend on factors
        self._known: dict[tuple[Setup, tuple[tuple[str, float], ...]], StepSeconds] = {}

    def predict(self, setup: Setup, factors: Factors) -> StepSeconds:
        """The mean step of a setup, with the named quantities multiplied by factors."""
        key = (setup, tuple(sorted(item for item in factors.items() if item[0] in self.used(setup))))
        if key not in self._known:
            found = self._predict(setup, factors)
            self._known[key] = replace(found, by_tokens=self._elasticity(setup, found))
        return self._known[key]

    def _elasticity(self, setup: Setup, step: StepSeconds) -> float:
        """The share of the step that is proportional to tokens; touched rows grow more slowly than tokens."""
        costs, tokens = self.measured.costs, self._tokens(setup)
        own = tokens * self.measured.padding * largest_share(setup.batch_size, setup.workers)
        computing = step.compute * costs.compute.slope * own / max(costs.compute.at(own), 1e-12)
        updating = step.update * costs.update.slope * tokens / max(costs.update.at(tokens), 1e-12)
        rows = row_bytes(self.measured, setup)
        exchanging = ROWS_BY_TOKENS * step.exchange * rows / (rows + self.measured.model.dense_bytes or 1.0)
        return min(1.0, (computing + updating + exchanging) / step.total)

    def used(self, setup: Setup) -> frozenset[str]:
        """The quantities that the step of a setup depends on."""
        always = {"compute", "by_rows", "update", "load", "crowded", "machine", "stragglers"}
        if setup.workers == 1 or setup.strategy == "hogwild":
            return frozenset(always)
        if setup.strategy == "async":
            return frozenset(always | {"bandwidth", "latency", "message", "server"})
        if setup.hosts == 1:
            return frozenset(always | {"memory", "memory_latency"})
        return frozenset(always | {"bandwidth", "latency", "message", "overlap"})

    def _predict(self, setup: Setup, factors: Factors) -> StepSeconds:
        if setup.strategy == "async" and setup.workers > 1:
            return self._with_server(setup, factors)
        if setup.strategy in LOCAL_STRATEGIES and setup.workers > 1:
            return self._local(setup, factors)
        return self._synchronous(setup, factors)

    def _value(self, name: str, factors: Factors) -> float:
        return self.quantities[name].value * factors.get(name, 1.0)

    def _tokens(self, setup: Setup) -> float:
        return self.measured.tokens * setup.batch_size / self.measured.batch_size

    def _compute(self, setup: Setup, factors: Factors) -> Floats:
        """(workers,) mean seconds of forward and backward, with what loading takes from the same core."""
        costs, relative = self.measured.costs, setup.relative
        scale = factors.get("compute", 1.0) * factors.get("machine", 1.0)
        padded = self._tokens(setup) * self.measured.padding
        by_rows = min(1.0, self._value("by_rows", factors)) * costs.compute.fixed
        measured_padded = self.measured.tokens * self.measured.padding / self.measured.workers
        fixed = scale * (costs.compute.fixed - by_rows)
        per_token = scale * (costs.compute.slope + by_rows / measured_padded)
        if setup.is_balanced:
            shares = Costs(fixed * relative, per_token * relative, np.full(setup.workers, np.inf)).share_out(padded)
        else:
            shares = np.full(setup.workers, padded * largest_share(setup.batch_size, setup.workers))
        seconds = relative * (fixed + per_token * shares) * float(self.noise.mean())
        loading: Floats = seconds + self._loading(setup, factors)
        return loading

    def _loading(self, setup: Setup, factors: Factors) -> float:
        """Seconds of loading that delay computing: none beside a free core, or if the measured seconds contain them.

        Part of the loading happens while workers wait for each other.
        """
        busy = min(setup.workers, setup.per_host) * self.measured.threads
        if not self.measured.costs.load_is_hidden or busy < setup.cores:
            return 0.0
        scale = factors.get("load", 1.0) * factors.get("machine", 1.0) * self._value("crowded", factors)
        return scale * self.measured.costs.load.at(self._tokens(setup))

    def _update(self, setup: Setup, factors: Factors) -> float:
        scale = factors.get("update", 1.0) * factors.get("machine", 1.0)
        return scale * self.measured.costs.update.at(self._tokens(setup))

    def _payload(self, setup: Setup, batches: int = 1, item: int = 4) -> float:
        key = (setup, batches)
        if key not in self._rows:
            self._rows[key] = payload_bytes(self.measured, setup, batches, item)
        return self._rows[key]

    def _link(self, setup: Setup, payload: float, factors: Factors) -> Link:
        """The ring or tree of the workers. Within one machine, a ring stands for adding up through shared memory."""
        if setup.hosts == 1:
            rate = self._value("memory", factors)
            seconds = shared_memory_seconds(payload, setup.workers, self._value("memory_latency", factors), rate)
            return RingLink(0.0, seconds / max(1, 2 * (setup.workers - 1)), rate)
        latency = setup.network.latency_s * factors.get("latency", 1.0)
        rate = setup.network.bytes_per_s * factors.get("bandwidth", 1.0) * self.quantities["goodput"].value
        if setup.sums == TREE:
            return TreeLink(payload, latency + self._value("message", factors), rate)
        rounds = self.quantities["rounds"].value
        return RingLink(payload, rounds * latency + self._value("message", factors), rate)

    def _exchange(self, setup: Setup, payload: float, factors: Factors) -> float:
        link = self._link(setup, payload, factors)
        seconds = tree_seconds if isinstance(link, TreeLink) else ring_seconds
        return seconds(link.payload, setup.workers, link.latency, link.bytes_per_s)

    def _slowest(self, setup: Setup, factors: Factors, steps: int = 1) -> float:
        """How much longer the slowest worker takes than the mean; over several steps its bad luck evens out."""
        extra = slowest_of(self.noise, setup.workers) - 1.0
        return 1.0 + extra / math.sqrt(steps) * factors.get("stragglers", 1.0)

    def _synchronous(self, setup: Setup, factors: Factors) -> StepSeconds:
        compute, update = self._compute(setup, factors), self._update(setup, factors)
        if setup.workers == 1 or setup.strategy == "hogwild":
            own = float(compute.max())
            return StepSeconds(own + update, own, 0.0, update, 0.0)
        payload = self._payload(setup)
        exchange = self._exchange(setup, payload, factors)
        gamma = 1.0 + self._value("overlap", factors) if setup.hosts > 1 else 1.0
        if setup.slowness:
            team = SimulatedTeam(compute, update, self._spread(factors))
            link = self._link(setup, payload, factors)
            total, slowest = simulate_synchronous(team, link, gamma, 40), float(compute.max())
        else:
            slowest = float(compute.max()) * self._slowest(setup, factors)
            total = overlapped_seconds(slowest, exchange, gamma) + update
        return StepSeconds(total, slowest, exchange, update, ring_bytes(payload, setup.workers))

    def _spread(self, factors: Factors) -> Floats:
        """The relative compute times, closer together or further apart by the factor of the stragglers."""
        mean = float(self.noise.mean())
        spread: Floats = np.maximum(mean + (self.noise - mean) * factors.get("stragglers", 1.0), 0.05 * mean)
        return spread

    def _local(self, setup: Setup, factors: Factors) -> StepSeconds:
        compute, update, every = self._compute(setup, factors), self._update(setup, factors), setup.sync_every
        payload = self._payload(setup, every, item=8)
        exchange = self._exchange(setup, payload, factors) + self._exchange(setup, 0.0, factors)
        if setup.slowness:
            team = SimulatedTeam(compute, update, self._spread(factors))
            link = self._link(setup, payload, factors)
            total, slowest = simulate_local(team, link, every, 8), float(compute.max())
        else:
            slowest = float(compute.max()) * self._slowest(setup, factors, every)
            total = slowest + update + exchange / every
        return StepSeconds(total, slowest, exchange / every, update, ring_bytes(payload, setup.workers) / every)

    def _with_server(self, setup: Setup, factors: Factors) -> StepSeconds:
        compute, update = self._compute(setup, factors), self._update(setup, factors)
        scale = factors.get("load", 1.0) * factors.get("machine", 1.0)
        loading = scale * self.measured.costs.load.at(self._tokens(setup))
        compute = compute - self._loading(setup, factors) + loading  # a client loads a lease before it computes
        rows, dense = row_bytes(self.measured, setup), self.measured.model.dense_bytes
        names = 8.0 * sum(
            touched_rows(self.measured, name, setup.batch_size, setup) for name in self.measured.model.tables
        )
        moved = 2 * (dense + rows) + names
        rate = setup.network.bytes_per_s * factors.get("bandwidth", 1.0) * self.quantities["goodput"].value
        server = Server(
            ask=names,
            pull=(dense, rows),
            push=dense + rows,
            latency=setup.network.latency_s * factors.get("latency", 1.0) + self._value("message", factors),
            bytes_per_s=rate,
            handle=moved / self._value("server", factors),
            update=update,
        )
        steps = SIMULATED_STEPS if setup.workers <= 16 else SIMULATED_STEPS // 3
        total = simulate_server(SimulatedTeam(compute, 0.0, self._spread(factors)), server, steps)
        return StepSeconds(total, float(compute.max()), moved * setup.workers / rate, update, moved * setup.workers)
