"""Which words are left out as too frequent, and which are drawn as noise: pure functions of the word counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

POWER = 0.75  # of a word's count: its share of the noise (Mikolov et al. 2013)
FULL = (1 << 32) - 1


def keep_thresholds(counts: npt.NDArray[np.int64], sample: float) -> npt.NDArray[np.uint32]:
    """A word is kept if a random 32-bit number is below its threshold.

    The chance is (√(f/t) + 1)·t/f for a word that makes up the share f of the text and t = `sample`, as in word2vec.
    """
    if sample == 0:
        return np.full(len(counts), FULL, np.uint32)
    ratio = counts / (sample * counts.sum())
    chances = np.minimum(1.0, (np.sqrt(ratio) + 1.0) / ratio)
    return np.asarray(chances * FULL, np.uint32)


def noise_table(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Thresholds from 0 to 2²⁴ (32 low bits) and aliases (32 high bits) that draw word i in proportion to
    counts[i] ** POWER. Both are in one number, because a draw then waits for the memory once.

    Walker's alias method as Vose (1991) builds it: draw a place, then the place itself if a random number is below its
    threshold, else its alias.
    """
    weights = counts.astype(np.float64) ** POWER
    scaled = weights * (len(weights) / weights.sum())
    aliases = np.arange(len(weights), dtype=np.int32)
    small = np.flatnonzero(scaled < 1.0).tolist()
    large = np.flatnonzero(scaled >= 1.0).tolist()
    while small and large:
        less, more = small.pop(), large[-1]
        aliases[less] = more
        scaled[more] -= 1.0 - scaled[less]
        if scaled[more] < 1.0:
            small.append(large.pop())
    scaled[small] = scaled[large] = 1.0  # what is left differs from 1 by rounding alone
    thresholds = (np.minimum(scaled, 1.0) * (1 << 24)).astype(np.uint64)
    entries: npt.NDArray[np.uint64] = thresholds | (aliases.astype(np.uint64) << np.uint64(32))
    return entries
