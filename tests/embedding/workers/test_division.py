"""The words are divided among machines without a gap and without an overlap."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tenor.embedding.workers.division import Division

WORKERS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(WORKERS, st.integers(0, 50), st.integers(0, 120), st.integers(1, 5))
def test_every_block_has_one_machine(workers: list[int], first: int, more: int, blocks_each: int) -> None:
    total = first + more
    offsets = [0, *itertools.accumulate(workers)]
    machines = [Division(first, offset, size, offsets[-1]) for offset, size in zip(offsets[:-1], workers, strict=True)]
    ends = list(machines[0].rounds(total, blocks_each))
    assert ends[-1] == total and ends == sorted(set(ends)) and all(machine.step == sum(workers) for machine in machines)
    done = set(range(first))
    for before, end in itertools.pairwise([first, *ends]):
        for machine in machines:
            places = range(machine.num_blocks(before), machine.num_blocks(end))
            new = {machine.block(place) for place in places}
            assert len(new) == len(places) <= blocks_each * machine.size and not new & done
            assert machine.block(machine.num_blocks(end)) >= end  # the next one belongs to a later round
            done |= new
        assert done == set(range(end))
