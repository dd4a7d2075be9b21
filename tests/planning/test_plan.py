"""Plans from a measurement with known costs: figures by hand, intervals, marks, the front and refusals."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.planned import FIXED, PER_TOKEN, UPDATE, measurement

from tenor.bench.network.spec import parse_network
from tenor.errors import UsageError
from tenor.planning.answers import plan_measurement
from tenor.planning.assumptions import Known, make_quantities
from tenor.planning.costs.noise_scale import NoiseScale
from tenor.planning.experiments import advise
from tenor.planning.inputs.measurement import CurvePoint
from tenor.planning.plan import make_plan
from tenor.planning.quantities import SPAN, Quantity, forecast
from tenor.planning.rows import Interval, PlanRow, mark_front
from tenor.planning.settings import PlanSettings
from tenor.planning.step import PER_WORKER, TALLIES, Setup, StepModel, payload_bytes
from tenor.training.tallies import Tallies

LOAD = 0.5 * 0.0005  # half of the loading delays a worker whose machine has no free core
NETWORK = parse_network("1gbit,1ms")
ONE = Setup(1, 1, 2, "single", 64, NETWORK)


def model(**changes: Any) -> StepModel:
    measured = measurement(**changes)
    return StepModel(measured, make_quantities(measured, Known(True, True, "1gbit,1ms")))


def seconds(setup: Setup, **changes: Any) -> float:
    return model(**changes).predict(setup, {}).total


def fixed(share: float) -> float:
    """What computing costs whatever the tokens, for a share of the measured rows: half of it grows with the rows."""
    return FIXED * (0.5 + 0.5 * share)


def test_one_worker_is_what_was_measured() -> None:
    assert seconds(ONE) == pytest.approx(FIXED + 5000 * PER_TOKEN + UPDATE)


def test_two_workers_of_one_machine_share_compute_and_load_beside_it() -> None:
    two = replace(ONE, workers=2, per_host=2, strategy="allreduce")
    payload = 400_000 + 1000 * 400 + 4 * (8 + 5 * 2)
    exchange = 50e-6 + 3 * payload / 8e9
    found = model().predict(two, {})
    assert found.total == pytest.approx(fixed(1 / 2) + 2500 * PER_TOKEN + LOAD + exchange + UPDATE)
    assert found.bytes_sent == pytest.approx(payload)
    free_core = replace(two, cores=3)
    assert seconds(free_core) == pytest.approx(found.total - LOAD)
    contained = measurement().costs
    assert seconds(two, costs=replace(contained, load_is_hidden=False)) == pytest.approx(found.total - LOAD)


def test_a_batch_with_fewer_rows_than_workers_leaves_some_without_work() -> None:
    many = replace(ONE, workers=100, per_host=100, cores=100, strategy="hogwild")
    assert seconds(many) == pytest.approx(fixed(1 / 64) + 5000 / 64 * PER_TOKEN + LOAD + UPDATE)


def test_a_ring_between_machines_by_hand() -> None:
    four = replace(ONE, workers=4, per_host=1, cores=1, strategy="allreduce")
    found = model().predict(four, {})
    payload = 400_000 + 1000 * 400 + 4 * (8 + 5 * 4)
    exchange = 6 * (2.2 * 0.001 + 150e-6 + payload / 4 / (0.94 * 1.25e8))
    assert found.exchange == pytest.approx(exchange)
    compute = fixed(1 / 4) + 1250 * PER_TOKEN + LOAD
    assert found.total == pytest.approx((compute**1.1 + exchange**1.1) ** (1 / 1.1) + UPDATE)


def test_a_tree_between_machines_by_hand() -> None:
    four = replace(ONE, workers=4, per_host=1, cores=1, strategy="allreduce", sums="tree")
    found, ring = model().predict(four, {}), model().predict(replace(four, sums="ring"), {})
    payload = 400_000 + 1000 * 400 + 4 * (8 + 5 * 4)
    assert found.exchange == pytest.approx(4 * (0.001 + 150e-6 + payload / (0.94 * 1.25e8)))
    assert found.bytes_sent == ring.bytes_sent and found.compute == ring.compute
    # In a mix, all wait for the slow worker, which is the last leaf.
    mix = replace(four, workers=4, slowness=(1.0, 1.0, 1.0, 3.0))
    slow = 3 * (fixed(1 / 4) + 1250 * PER_TOKEN) + LOAD
    exchange = 4 * (0.001 + 150e-6 + payload / (0.94 * 1.25e8))
    assert seconds(mix) == pytest.approx((slow**1.1 + exchange**1.1) ** (1 / 1.1) + UPDATE, rel=0.01)
    many = replace(ONE, workers=1024, per_host=1, cores=1, strategy="allreduce")
    assert seconds(replace(many, sums="tree")) < seconds(many) / 10  # 20 rounds instead of 2,046


def test_the_tallies_of_a_step_are_counted() -> None:
    found = Tallies(*[0.0] * TALLIES).pack(0, 3, *[0.0] * PER_WORKER)
    one = measurement()
    setup = replace(ONE, workers=3, strategy="allreduce")
    weights = 400_000 + 1000 * 400
    assert payload_bytes(one, setup) - weights == 4 * found.numel() == 4 * (TALLIES + 3 * PER_WORKER)


def test_mixes_wait_for_the_slow_worker_unless_they_are_balanced() -> None:
    mix = replace(ONE, workers=2, per_host=2, strategy="allreduce", slowness=(1.0, 3.0))
    exchange = model().predict(replace(mix, slowness=()), {}).exchange
    slow = 3 * (fixed(1 / 2) + 2500 * PER_TOKEN) + LOAD
    assert seconds(mix) == pytest.approx(slow + exchange + UPDATE, rel=1e-6)
    # Balanced: f + t·x = 3 f + 3 t (5000 − x) with x tokens for the fast worker; half of FIXED grows with its rows
    each = PER_TOKEN + 0.5 * FIXED / 5000
    tokens = (2 * 0.5 * FIXED + 3 * each * 5000) / (4 * each)
    together = 0.5 * FIXED + each * tokens + LOAD
    assert seconds(replace(mix, is_balanced=True)) == pytest.approx(together + exchange + UPDATE, rel=1e-6)


def test_local_steps_exchange_rarely() -> None:
    local = replace(ONE, workers=2, per_host=1, cores=1, strategy="local-sgd", sync_every=10)
    found = model().predict(local, {})
    touched = payload_bytes(measurement(), local, 10, 8)
    assert 400_000 + 1000 * 400 < touched < 400_000 + 10 * 1000 * 400
    rounds = 2 * (2.2 * 0.001 + 150e-6)
    expected = 2 * rounds + touched / (0.94 * 1.25e8)  # the tallies travel before the weights
    assert found.exchange == pytest.approx(expected / 10)
    assert found.total == pytest.approx(fixed(1 / 2) + 2500 * PER_TOKEN + LOAD + UPDATE + expected / 10)


def test_a_server_moves_weights_and_rows_both_ways() -> None:
    served = replace(ONE, workers=2, per_host=1, cores=1, strategy="async")
    found = model().predict(served, {})
    assert found.bytes_sent == pytest.approx(2 * (2 * (400_000 + 1000 * 400) + 8 * 1000))
    assert found.total > fixed(1 / 2) + 2500 * PER_TOKEN + 2 * LOAD + UPDATE  # a client loads before it computes


@pytest.mark.parametrize("strategy", ["allreduce", "local-sgd", "async", "hogwild"])
def test_a_larger_number_never_makes_a_step_shorter(strategy: str) -> None:
    setup = replace(ONE, workers=4, per_host=1, cores=1, strategy=strategy)
    found = model()
    base = found.predict(setup, {}).total
    least = 0.97 if strategy == "async" else 0.999  # which workers meet at the server is chance
    for name in found.used(setup) - {"bandwidth", "server", "overlap", "by_rows"}:
        assert found.predict(setup, {name: 1.5}).total >= base * least, name


def test_intervals_agree_with_random_draws() -> None:
    quantities = {"a": Quantity(2.0, 0.1, ""), "b": Quantity(3.0, 0.2, ""), "c": Quantity(1.0, 0.0, "")}

    def compute(factors: Any) -> float:
        return 2.0 * factors.get("a", 1.0) * (3.0 * factors.get("b", 1.0)) ** 2

    found = forecast(compute, quantities)
    rng = np.random.default_rng(0)
    draws = 2.0 * rng.lognormal(0, 0.1, 100_000) * (3.0 * rng.lognormal(0, 0.2, 100_000)) ** 2
    assert found.value == 18.0
    assert (found.low, found.high) == pytest.approx(np.quantile(draws, [0.05, 0.95]), rel=0.02)
    assert found.shares == pytest.approx({"a": 0.01 / 0.17, "b": 0.16 / 0.17})
    assert forecast(lambda _: 5.0, {}).low == forecast(lambda _: 5.0, {}).high == 5.0


def test_rows_by_hand() -> None:
    plan = make_plan(measurement(), PlanSettings(workers="1,2"))
    one, two = plan.rows
    step = FIXED + 5000 * PER_TOKEN + UPDATE
    assert one.step is not None and one.step.value == pytest.approx(step)
    assert one.epoch is not None and one.epoch.value == pytest.approx(1000 * step)
    assert one.total.value == pytest.approx(2000 * step) and one.efficiency.value == pytest.approx(1.0)
    assert one.dollars.value == pytest.approx(2000 * step * 0.085 / 3600)  # the cheapest machine of two cores
    assert two.efficiency.value == pytest.approx(one.total.value / two.total.value / 2)
    assert one.accuracy is not None and one.accuracy.value == pytest.approx(0.85)
    assert all(row.total.low < row.total.value < row.total.high for row in plan.rows)
    assert (one.machines, two.machines, two.machine) == (1, 1, "c5.large")


def test_machines_are_counted_and_priced() -> None:
    rows = make_plan(measurement(), PlanSettings(workers="8,9", machine="c5.xlarge")).rows
    assert [row.machines for row in rows] == [2, 3]
    assert rows[0].dollars.value == pytest.approx(2 * rows[0].total.value * 0.17 / 3600)
    spread = make_plan(measurement(), PlanSettings(workers="4", spread=True)).rows[0]
    served = make_plan(measurement(), PlanSettings(workers="4", strategy="async")).rows[0]
    assert (spread.machines, spread.hosts, served.machines, served.hosts) == (4, 4, 3, 2)


def test_other_machines_are_less_certain_and_gpus_are_refused() -> None:
    own, other = (
        make_plan(measurement(), PlanSettings(workers="1", machine=name)).rows[0].total for name in ("", "m5.large")
    )
    assert other.high / other.low > 1.5 * own.high / own.low
    with pytest.raises(UsageError, match=r"p2\.xlarge has GPUs.*a table of these runs"):
        make_plan(measurement(), PlanSettings(machine="p2.xlarge"))
    with pytest.raises(UsageError, match="no price is known"):
        make_plan(measurement(), PlanSettings(machine="abacus"))


def test_a_larger_batch_sees_more_samples_by_the_noise_scale() -> None:
    noisy = measurement(noise_scale=NoiseScale(192.0, 150.0, 250.0, 500))
    (row,) = make_plan(noisy, PlanSettings(workers="1", batch_size=576)).rows
    assert row.epochs == pytest.approx(2 * (1 + 576 / 192) / (1 + 64 / 192))
    assert row.step is not None and row.step.value == pytest.approx(fixed(9) + 9 * 5000 * PER_TOKEN + UPDATE)
    assert row.total.value == pytest.approx(row.step.value * row.epochs * 64_000 / 576)
    assert row.extrapolated == ("batch 576, measured 64",)


def test_auto_takes_the_batch_with_which_training_is_over_first() -> None:
    noisy = measurement(noise_scale=NoiseScale(5000.0, 4000.0, 6000.0, 500))
    (row,) = make_plan(noisy, PlanSettings(workers="16", batch_size="auto")).rows
    tried = [make_plan(noisy, PlanSettings(workers="16", batch_size=64 << k)).rows[0] for k in range(10)]
    assert row.total.value == min(one.total.value for one in tried) and row.batch_size != 64


def test_what_is_far_from_the_measurement_is_marked() -> None:
    near, far = make_plan(measurement(), PlanSettings(workers="4,5")).rows
    assert near.extrapolated == () and far.extrapolated == ("5 workers, measured 1",)
    (large,) = make_plan(measurement(), PlanSettings(workers="1", reviews="1M")).rows
    assert large.extrapolated == ("2,000,000 samples, measured 128,000",)
    assert far.total.high / far.total.low > near.total.high / near.total.low


def test_the_time_to_an_accuracy() -> None:
    gentle = measurement(curve=(CurvePoint(64_000, 0.8), CurvePoint(128_000, 0.83)))
    error = 0.17 * 0.17 / 0.2  # twice as many samples once more
    (row,) = make_plan(gentle, PlanSettings(workers="1", accuracy=1 - error)).rows
    assert row.epochs == pytest.approx(4.0, rel=1e-3) and row.accuracy is not None
    assert row.accuracy.value == pytest.approx(1 - error)
    (reached,) = make_plan(measurement(), PlanSettings(workers="1", accuracy=0.8)).rows
    assert reached.epochs == pytest.approx(1.0, rel=1e-3)
    flat = measurement(curve=(CurvePoint(64_000, 0.8), CurvePoint(128_000, 0.8)))
    (never,) = make_plan(flat, PlanSettings(workers="1", accuracy=0.9999)).rows
    assert math.isinf(never.total.value) and not never.is_pareto
    with pytest.raises(UsageError, match="needs a validation curve"):
        make_plan(measurement(curve=()), PlanSettings(accuracy=0.9))


def test_the_time_to_prepare_is_part_of_the_total_and_of_the_dollars() -> None:
    rated = measurement(prepare_bytes_per_s=1e7)
    without = make_plan(rated, PlanSettings(workers="1,4")).rows
    plan = make_plan(rated, PlanSettings(workers="1,4", gigabytes=2.0))
    assert [row.prepare.value for row in plan.rows if row.prepare] == pytest.approx([200.0, 50.0])
    for row, plain, seconds_ in zip(plan.rows, without, (200.0, 50.0), strict=True):
        assert row.total.value == pytest.approx(plain.total.value + seconds_) and row.step == plain.step
        assert row.dollars.value == pytest.approx(plain.dollars.value * row.total.value / plain.total.value)
        assert row.total.low < row.total.value < row.total.high
    assert plan.rows[1].efficiency.value == pytest.approx(plan.rows[0].total.value / plan.rows[1].total.value / 4)
    assert plan.target.endswith("after preparing 2 GB") and plan.quantities["prepare"].sigma == 0.3
    assert "prepare" in plan.shares["c5.large/1"] and "`tenor prepare`" in plan.assumptions[0]
    with pytest.raises(UsageError, match=r"rate of `tenor prepare`.*run does not have it"):
        make_plan(measurement(), PlanSettings(workers="1", gigabytes=2.0))


def test_a_wanted_accuracy_widens_the_training_and_not_the_preparing() -> None:
    gentle = measurement(curve=(CurvePoint(64_000, 0.8), CurvePoint(128_000, 0.83)), prepare_bytes_per_s=1e7)

    def width(gigabytes: float) -> float:
        (row,) = make_plan(gentle, PlanSettings(workers="1", accuracy=0.85, gigabytes=gigabytes)).rows
        return row.total.high / row.total.low

    assert width(1000.0) == pytest.approx(math.exp(2 * SPAN * 0.3), rel=0.01)
    assert width(0.001) > 1.5 * width(1000.0)


def offer(seconds_: float, dollars: float) -> PlanRow:
    span, cost = Interval(seconds_, seconds_, seconds_), Interval(dollars, dollars, dollars)
    return PlanRow(1, "m", 1, 1, "s", None, None, None, None, span, cost, span, None, None, None, ())


def test_the_front_against_brute_force() -> None:
    rng = np.random.default_rng(0)
    pairs = [(float(a), float(b)) for a, b in rng.integers(1, 12, (40, 2))]
    found = {place for place, row in enumerate(mark_front([offer(*pair) for pair in pairs])) if row.is_pareto}
    beaten = {i for i, (a, b) in enumerate(pairs) for c, d in pairs if (c < a and d <= b) or (c <= a and d < b)}
    assert found == set(range(len(pairs))) - beaten


def test_1024_workers_of_every_strategy_take_seconds() -> None:
    for strategy, workers, count in (("allreduce", "1-1024", 11), ("local-sgd", "1024", 1), ("async", "1024", 1)):
        began = time.perf_counter()
        rows = make_plan(measurement(), PlanSettings(workers=workers, reviews="142.8M", strategy=strategy)).rows
        assert len(rows) == count and all(math.isfinite(row.total.high) for row in rows)
        assert time.perf_counter() - began < 60  # far below 10 s on a quiet machine


def test_the_experiment_that_narrows_most() -> None:
    result = plan_measurement(measurement(), PlanSettings(workers="8", batch_size=4096))
    assert result.advice is not None and result.advice.after < result.advice.before
    assert "two workers of one machine" in result.advice.text  # the noise scale is unknown
    assert result.advice.causes[0][0] == "noise_scale"
    row = result.rows[0]
    other = advise(
        row, {"machine": 0.9, "compute": 0.1}, {"machine": Quantity(1.0, 0.3, ""), "compute": Quantity(1.0, 0.02, "")}
    )
    assert other is not None and row.machine in other.text
    total = math.log(row.total.high / row.total.value) / SPAN
    left = total * math.sqrt(1 - 0.9 * (1 - (0.05 / 0.3) ** 2))
    assert math.log(other.after) / SPAN == pytest.approx(left)
    assert advise(row, {}, {}) is None
