"""Work divided by costs: all workers finish together, caps hold, and rows stay whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.errors import TrainingError
from tenor.store.order import split
from tenor.training.balancing.costs import Costs, place


def make_costs(fixed: list[float], per_token: list[float], caps: list[float] | None = None) -> Costs:
    return Costs(np.array(fixed), np.array(per_token), np.array(caps or [np.inf] * len(fixed)))


def best_by_trying(lengths: np.ndarray, costs: Costs) -> float:
    """The smallest finish time over all divisions of the rows that give each worker at least one row."""
    best = np.inf
    for cuts in itertools.combinations(range(1, len(lengths)), len(costs.fixed) - 1):
        bounds = [0, *cuts, len(lengths)]
        tokens = np.array([(b - a) * lengths[a] for a, b in itertools.pairwise(bounds)], dtype=float)
        best = min(best, float(costs.finish(tokens).max()))
    return best


def test_all_finish_together() -> None:
    costs = make_costs([0.01, 0.02, 0.0], [1e-5, 2e-5, 3e-5])
    tokens = costs.share_out(10_000)
    assert tokens.sum() == pytest.approx(10_000)
    assert np.ptp(costs.finish(tokens)) < 1e-9


def test_a_fixed_cost_beyond_the_finish_gets_nothing_and_a_cap_holds() -> None:
    costs = make_costs([0.0, 0.0, 9.0], [1e-3, 1e-3, 1e-3], [300.0, np.inf, np.inf])
    np.testing.assert_allclose(costs.share_out(1000), [300, 700, 0], atol=1e-6)


rows = st.lists(st.integers(1, 200), min_size=1, max_size=12).map(lambda x: np.sort(np.array(x, np.int32))[::-1].copy())
workers = st.lists(st.tuples(st.floats(0, 0.01), st.floats(1e-6, 1e-4)), min_size=1, max_size=4)


@given(rows, workers)
def test_whole_rows_are_placed_as_well_as_can_be(lengths: np.ndarray, some: list[tuple[float, float]]) -> None:
    costs = make_costs([fixed for fixed, _ in some], [rate for _, rate in some])
    tokens = place(lengths, costs)
    cuts = split(lengths, tokens)  # what a worker makes of them
    given_rows = [cut.stop - cut.start for cut in cuts]
    padded = [(cut.stop - cut.start) * lengths[cut.start] if cut.stop > cut.start else 0 for cut in cuts]
    assert sum(given_rows) == len(lengths)
    np.testing.assert_array_equal(padded, tokens)
    if len(lengths) >= len(some):
        assert min(given_rows) >= 1
        best = best_by_trying(lengths, costs)
        is_free = (best >= costs.finish(lengths[:1])).all()  # nobody gets a row only so as not to be starved
        assert not is_free or costs.finish(tokens).max() <= best * (1 + 1e-6)


def test_fewer_rows_than_workers_go_to_the_fast_ones() -> None:
    costs = make_costs([0.0] * 3, [4e-5, 1e-5, 2e-5])
    np.testing.assert_array_equal(place(np.array([60, 50], np.int32), costs), [0, 60, 50])


def test_rows_without_a_token_are_placed_too() -> None:
    np.testing.assert_array_equal(place(np.array([5, 0, 0], np.int32), make_costs([0.0] * 3, [1e-5] * 3)), [5, 1, 1])


@given(rows, st.lists(st.integers(1, 2000), min_size=1, max_size=4))
def test_caps_hold_or_are_refused(lengths: np.ndarray, caps: list[int]) -> None:
    costs = make_costs([0.0] * len(caps), [1e-5 * (i + 1) for i in range(len(caps))], [float(cap) for cap in caps])
    try:
        tokens = place(lengths, costs)
    except TrainingError:
        assert not fits_by_trying(lengths, caps)
        return
    assert (tokens <= caps).all()
    assert sum(cut.stop - cut.start for cut in split(lengths, tokens)) == len(lengths)


def fits_by_trying(lengths: np.ndarray, caps: list[int], at: int = 0) -> bool:
    """Whether any division of the rows keeps within the caps; workers may get no row."""
    if at == len(lengths) or not caps:
        return at == len(lengths)
    most = min(len(lengths) - at, caps[0] // int(lengths[at]))
    return any(fits_by_trying(lengths, caps[1:], at + own) for own in range(most + 1))


def test_a_worker_whose_cap_holds_no_row_gets_none() -> None:
    costs = make_costs([0.0] * 3, [1e-5] * 3, [49.0, 1000.0, 20.0])
    lengths = np.array([50, 50, 30, 20], np.int32)
    np.testing.assert_array_equal(place(lengths, costs), [0, 150, 20])
    with pytest.raises(TrainingError, match="exceeds the workers' token caps"):
        place(lengths, make_costs([0.0] * 3, [1e-5] * 3, [49.0, 100.0, 20.0]))
    with pytest.raises(TrainingError, match="a row of 50 tokens exceeds every worker's token cap"):
        place(lengths, make_costs([0.0] * 2, [1e-5] * 2, [49.0, 5.0]))
