"""Windows of a text as samples: a word, its neighbours and its noise words. The sample's key decides which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.embedding.kernels.noise import POWER, keep_thresholds
from tenor.embedding.kernels.windows import BREAK
from tenor.models.deep.masks import sample_keys, uniform
from tenor.models.skipgram import NONE

KEEP, REACH, NOISE = range(3)  # streams of random numbers
FULL = float(1 << 32)

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """The windows around the words of a text, with frequent words left out at random."""

    text: NDArray[np.int32]  # word numbers, BREAK between texts
    middles: Ids  # the places of the words in the text: one window each
    noise: NDArray[np.float64]  # cumulative chances of the noise words
    window: int
    num_noise: int

    def sample(self, rows: Ids, keys: NDArray[np.uint64]) -> tuple[Ids, Ids]:
        """Words and their noise words, (1 + noise, rows); and their neighbours, (2 × window, rows), NONE at the end."""
        places = self.middles[rows]
        drawn = np.searchsorted(self.noise, uniform(keys, NOISE, self.num_noise), side="right")
        far = np.concatenate([self.text[places][:, None], np.minimum(drawn, len(self.noise) - 1)], axis=1)
        reach = (uniform(keys, REACH, 1)[:, 0] * self.window).astype(np.int64) + 1
        sides = [self._side(places, step, reach) for step in (-1, 1)]
        near = np.concatenate(sides)
        near = np.take_along_axis(near, np.argsort(near == NONE, axis=0, kind="stable"), axis=0)
        return far.T.astype(np.int64), near

    def _side(self, places: Ids, step: int, reach: Ids) -> Ids:
        """The neighbours on one side, the nearest first, up to the end of the text."""
        found = np.full((self.window, len(places)), NONE, np.int64)
        is_inside = np.ones(len(places), bool)
        for distance in range(1, self.window + 1):
            at = places + step * distance
            is_inside &= (at >= 0) & (at < len(self.text)) & (distance <= reach)
            words = self.text[np.clip(at, 0, len(self.text) - 1)]
            is_inside &= words != BREAK
            found[distance - 1, is_inside] = words[is_inside]
        return found


def make_windows(
    text: NDArray[np.int32], counts: NDArray[np.int64], sample: float, window: int, num_noise: int, seed: int
) -> Windows:
    """Leave out frequent words once, by the seed, and prepare to draw noise words by their counts.

    Args:
        text: Word numbers, BREAK between texts.
        counts: How often each word occurs.
        sample: Words above this share of the text are left out at random.
        window: The largest distance of a neighbour.
        num_noise: The noise words of each window.
        seed: Of the words that are left out.
    """
    chances = keep_thresholds(counts, sample) / FULL
    is_word = text != BREAK
    drawn = uniform(sample_keys(seed, 0, np.flatnonzero(is_word)), KEEP, 1)[:, 0]
    is_kept = ~is_word
    is_kept[is_word] = drawn < chances[text[is_word]]
    kept = text[is_kept]
    shares = counts**POWER
    return Windows(kept, np.flatnonzero(kept != BREAK), np.cumsum(shares / shares.sum()), window, num_noise)
