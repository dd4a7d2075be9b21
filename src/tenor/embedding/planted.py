"""A generated text whose similarities between words are known, for tests and benchmarks that need no download.

Every word has a hidden direction. A text follows a topic, which is a direction too, and uses a word the more often the
closer the two are. So words with close directions stand in the same texts, and vectors that are learned from the text
should be as similar as the hidden directions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NUM_WORDS, HIDDEN = 400, 5
NUM_TOPICS = 512
TEXT_WORDS = 12
SHARPNESS = 4.0  # how strongly a topic prefers its words

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Planted:
    """Texts as word numbers, the words, and the cosine of their hidden directions."""

    texts: Ids  # (texts, TEXT_WORDS)
    words: list[str]
    similarities: npt.NDArray[np.float64]  # (words, words)

    def questions(self, count: int = 1000) -> str:
        """Pairs of words with their similarity, as lines of a file for `tenor embed --evaluate`."""
        pairs = np.random.default_rng(1).integers(0, len(self.words), (count, 2))
        rows = [(self.words[a], self.words[b], self.similarities[a, b]) for a, b in pairs if a != b]
        return "".join(f"{a}\t{b}\t{value:.6f}\n" for a, b, value in rows)


def plant(num_texts: int, seed: int = 0) -> Planted:
    """Generate texts; the words and their directions are always the same, the texts depend on the seed."""
    fixed = np.random.default_rng(0)
    directions = fixed.normal(size=(NUM_WORDS, HIDDEN))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    topics = fixed.normal(size=(NUM_TOPICS, HIDDEN))
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    frequencies = 1.0 / np.arange(10, NUM_WORDS + 10)  # Zipf's law, without its extremes
    chances = fixed.permutation(frequencies) * np.exp(SHARPNESS * topics @ directions.T)
    ends = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    ends[:, -1] = 1.0
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, NUM_TOPICS, num_texts)[:, None]
    places = np.searchsorted(
        (ends + np.arange(NUM_TOPICS)[:, None]).ravel(), chosen + rng.random((num_texts, TEXT_WORDS))
    )
    texts = np.minimum(places - chosen * NUM_WORDS, NUM_WORDS - 1).astype(np.int32)
    return Planted(texts, _names(), directions @ directions.T)


def _names() -> list[str]:
    syllables = [first + second for first, second in itertools.product("bdklmnprst", "ai")]
    return ["".join(pair) for pair in itertools.product(syllables, repeat=2)][:NUM_WORDS]
