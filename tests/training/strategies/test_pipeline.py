"""The schedule of a pipeline: pure functions, tested without processes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.errors import UsageError
from tenor.training.strategies.pipeline import Pass, place_stages, plan


def test_embedding_and_head_share_a_rank_and_layers_are_spread() -> None:
    assert place_stages(3, 1) == (0, 0, 0)
    assert place_stages(3, 2) == (0, 1, 0)  # embedding, a recurrent layer, head
    assert place_stages(4, 3) == (0, 1, 2, 0)
    assert place_stages(6, 3) == (0, 1, 1, 2, 2, 0)
    assert place_stages(2, 2) == (0, 1)  # two dense layers
    assert place_stages(3, 3) == (0, 1, 2)
    with pytest.raises(UsageError, match="3 stages cannot be split over 4"):
        place_stages(3, 4)


parts = st.integers(2, 6).flatmap(lambda stages: st.integers(1, stages).map(lambda depth: place_stages(stages, depth)))


@given(parts, st.integers(1, 9))
def test_the_schedule_is_feasible_and_has_every_pass_once(ranks: tuple[int, ...], pieces: int) -> None:
    orders = [list(order) for order in plan(ranks, pieces)]
    assert sorted(one for order in orders for one in order) == sorted(
        Pass(back, part, piece) for back in (False, True) for part in range(len(ranks)) for piece in range(pieces)
    )
    done: set[Pass] = set()
    while any(orders):  # each rank does its next pass when the inputs are there, and waits otherwise
        able = [order for order in orders if order and inputs(order[0], len(ranks)) <= done]
        assert able, "all ranks wait for each other"
        for order in able:
            done.add(order.pop(0))
        for part in range(len(ranks)):
            kept = [one for one in done if one.part == part]
            flying = sum(not one.is_backward for one in kept) - sum(one.is_backward for one in kept)
            assert flying <= len(ranks) - part


def inputs(one: Pass, num_parts: int) -> set[Pass]:
    if not one.is_backward:
        return {Pass(False, one.part - 1, one.micro_batch)} if one.part else set()
    own = Pass(False, one.part, one.micro_batch)
    return {own} if one.part == num_parts - 1 else {own, Pass(True, one.part + 1, one.micro_batch)}


def test_both_ranks_compute_at_the_same_time() -> None:
    """The rank of the layers always has another micro-batch to compute while the head has the previous one."""
    _, order = plan((0, 1, 0), 4)
    assert all(one.micro_batch != after.micro_batch for one, after in pairwise(order))
