"""The hash of n-grams: splitmix64's finaliser over their tokens or characters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import inlined

GOLDEN = 0x9E3779B97F4A7C15
_GOLDEN = np.uint64(GOLDEN)
_U1, _U27, _U30, _U31 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31)
MIX_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0))  # bits to shift, factor; 0: none
_K1, _K2 = np.uint64(MIX_STEPS[0][1]), np.uint64(MIX_STEPS[1][1])


@inlined
def _mixed(state: Any) -> Any:
    """The finaliser of splitmix64: every input bit affects every output bit."""
    state = (state ^ (state >> _U30)) * _K1
    state = (state ^ (state >> _U27)) * _K2
    return state ^ (state >> _U31)


@inlined
def extended_hash(state: Any, token: Any) -> Any:
    """The hash of an n-gram from the hash of its first n - 1 tokens and its last token."""
    return _mixed(state * _GOLDEN + np.uint64(token) + _U1)


def mixed_all(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same finaliser for many numbers, without compiled code."""
    for bits, factor in MIX_STEPS:
        states = states ^ (states >> np.uint64(bits))
        if factor:
            states = states * np.uint64(factor)
    return states
