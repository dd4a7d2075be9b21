"""What a plan assumes beyond its measurement: every number with its error and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tenor.bench.network.spec import NetworkSpec
from tenor.planning.costs.communication import shared_memory_seconds
from tenor.planning.costs.compute import CostLine
from tenor.planning.inputs.measurement import Measurement
from tenor.planning.quantities import Quantity
from tenor.planning.step import Setup, payload_bytes

FAR = 4.0  # times what was measured; anything beyond is marked as extrapolated
DEFAULT_NOISE = (1000.0, 1.5)  # the noise scale in samples and its error, if it was not measured
_ASSUMED = "assumed"


@dataclass(frozen=True)
class Known:
    """How well the surroundings of a plan are known."""

    is_same_machine: bool  # whether the planned machines are of the measured kind
    is_network_given: bool  # whether the user named the network
    network: str  # bandwidth and latency


def make_quantities(measured: Measurement, known: Known) -> dict[str, Quantity]:
    """All numbers that a prediction depends on and that are known only roughly, by name."""
    costs, where = measured.costs, f"fitted to {measured.costs.steps:,} steps of {measured.source}"
    how = "given with --network" if known.is_network_given else "assumed for this kind of machine"
    network = f"{known.network}, {how}"
    noise, noise_error = _noise_scale(measured)
    return {
        "compute": Quantity(
            1.0, max(0.02, 2 * costs.compute.error), f"{_line(costs.compute, 'padded token')}, {where}"
        ),
        "by_rows": Quantity(0.5, 0.5, f"{_ASSUMED}: share of the fixed part of computing that grows with the rows"),
        "update": Quantity(
            1.0, max(0.05, 2 * costs.update.error), f"{_line(costs.update, 'token of a batch')}, {where}"
        ),
        "load": Quantity(1.0, max(0.10, 2 * costs.load.error), f"{_line(costs.load, 'token of a batch')}, {where}"),
        "crowded": Quantity(0.5, 0.5, f"{_ASSUMED}: share of loading that delays computing if no core is free"),
        "stragglers": Quantity(1.0, 0.5, f"distribution of compute times in {costs.steps:,} steps"),
        "machine": Quantity(1.0, 0.03 if known.is_same_machine else 0.25, _machine_source(known)),
        "bandwidth": Quantity(1.0, 0.05 if known.is_network_given else 0.3, network),
        "latency": Quantity(1.0, 0.2 if known.is_network_given else 0.5, network),
        "memory": _memory(measured),
        "memory_latency": Quantity(50e-6, 0.7, _ASSUMED),
        "message": Quantity(150e-6, 0.7, f"{_ASSUMED}: seconds of handling a message, beside the latency"),
        "rounds": Quantity(2.2, 0.0, "measured with gloo: latencies per round, because receivers announce themselves"),
        "goodput": Quantity(0.94, 0.0, "measured with gloo: share of the bandwidth that carries data"),
        "overlap": Quantity(0.1, 1.0, f"{_ASSUMED}: γ − 1; rows of tables are known only after backward"),
        "server": Quantity(1.0e9, 0.4, f"{_ASSUMED}: bytes per second that the server's processor handles"),
        "noise_scale": Quantity(noise, noise_error, _noise_source(measured)),
        "model": Quantity(1.0, 0.05, f"{_ASSUMED}: what the formulas leave out"),
    }


def _line(line: CostLine, unit: str) -> str:
    return f"{1e3 * line.fixed:.2f} ms + {1e6 * line.slope:.2f} µs per {unit}"


def _machine_source(known: Known) -> str:
    return "the measured machine" if known.is_same_machine else "assumed: a core is as fast as a measured one"


def _memory(measured: Measurement) -> Quantity:
    """The rate of adding up through shared memory: measured, if several workers of one machine did it."""
    seconds, workers = measured.costs.exchange_s, measured.costs.exchange_workers
    if seconds is None:
        return Quantity(8e9, 0.6, f"{_ASSUMED}: bytes per second and core through shared memory")
    setup = Setup(workers, workers, measured.cores, "allreduce", measured.batch_size, NetworkSpec(1e9, 1e-4))
    moved = shared_memory_seconds(payload_bytes(measured, setup), workers, 0.0, 1.0)
    return Quantity(moved / max(seconds, 1e-6), 0.3, "measured: waiting of the last worker in each step")


def _noise_scale(measured: Measurement) -> tuple[float, float]:
    found = measured.noise_scale
    if found is None:
        return DEFAULT_NOISE
    sigma = math.log(found.high / found.low) / 4 if found.low > 0 else DEFAULT_NOISE[1]
    return found.value, min(max(sigma, 0.05), DEFAULT_NOISE[1])


def _noise_source(measured: Measurement) -> str:
    found = measured.noise_scale
    if found is None:
        return f"{_ASSUMED}: gradients of several workers were not compared"
    return f"measured from the gradient norms of {found.steps:,} steps"


def beyond(measured: Measurement, setup: Setup, samples: float) -> list[str]:
    """In which ways a setup is more than `FAR` times away from what was measured, in words; empty if it is near.

    Args:
        measured: What was measured.
        setup: What is planned.
        samples: Samples that the planned training sees.
    """
    found = []
    if setup.workers > FAR * measured.workers:
        found.append(f"{setup.workers:,} workers, measured {measured.workers:,}")
    ratio = setup.batch_size / measured.batch_size
    if not 1 / FAR <= ratio <= FAR:
        found.append(f"batch {setup.batch_size:,}, measured {measured.batch_size:,}")
    seen = measured.curve[-1].samples if measured.curve else 0
    if samples > FAR * max(seen, 1):
        found.append(f"{samples:,.0f} samples, measured {seen:,}")
    return found


def model_error(measured: Measurement, workers: int) -> float:
    """The error of the formulas themselves: 5 % near the measured workers, and more with every doubling beyond."""
    doublings = abs(math.log2(workers / measured.workers))
    return math.hypot(0.05, 0.03 * doublings)
