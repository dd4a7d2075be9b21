"""The words with the strongest opinion in the training rows, by kind, bare and after a negator.

The opinion of a word is the log-ratio of its shares in the two classes (naive Bayes). It is counted apart for places
in the scope of a negator, as Das and Chen (2001) do: "disappointed" speaks for a negative review, and "not
disappointed" for a positive one. Words that are
seldom negated in the data take the opposite of their bare opinion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.preparation.tokeniser.vocabulary import FIRST_WORD
from tenor.training.tasks.negation.contexts import Contexts
from tenor.training.tasks.negation.grammar import OPINIONS, TOPIC, Grammar

LEAST_OPINION = 0.5  # |log-ratio|
LEAST_COUNT, LEAST_SURE = 15, 3.5  # occurrences, and standard errors
LEAST_NEGATED = 0.7  # |log-ratio| of a negated word
LEAST_SEEN, LEAST_SHOWN = 8, 2.5  # negated occurrences, and standard errors
NEUTRAL = 0.25  # |log-ratio| of a word without opinion
WEAK = 0.4  # |log-ratio| of a bare word whose negated one may say the same
FEW_SEEN = 3.0  # negated occurrences that count as much as the assumption that negation takes all opinion
LEFT = 0.8  # share of a word's opinion that may remain under negation if the word counts as reversed
MOST_WORDS = 200  # of each kind and opinion
MOST_TOPICS = 80
LARGEST_SLOPE = 0.5  # of negated opinions over bare ones, so that negation matters in the data
FEWEST_NEGATED = 20  # negated occurrences of a word that say how negation turns it
FEWEST_WORDS = 30  # words whose negated occurrences say whether negation matters

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class OpinionWords:
    """Word ids and how often each one is drawn."""

    ids: NDArray[np.int64]
    bounds: Numbers  # of each word between 0 and 1: a random number below it, and not below the one before, draws it

    @classmethod
    def of(cls, ids: NDArray[np.int64], weights: Numbers) -> OpinionWords:
        weights = weights[ids]
        return cls(ids, np.cumsum(weights) / weights.sum() if len(ids) else weights)

    def draw(self, number: float) -> int:
        """The word for a random number from 0 to below 1."""
        place = int(np.searchsorted(self.bounds, number, "right"))
        return int(self.ids[min(place, len(self.ids) - 1)])


ByKind = Mapping[tuple[str, int], OpinionWords]  # by kind and class


@dataclass(frozen=True)
class Lexicon:
    """Words by kind and by the class that they speak for.

    Attributes:
        bare: Words that speak for a class.
        negated: Words that speak for a class after a negator.
        topics: Nouns without opinion.
        slope: Of negated opinions over bare ones: 1 where negation does nothing, 0 where it takes all opinion.
    """

    bare: ByKind
    negated: ByKind
    topics: OpinionWords
    slope: float

    @property
    def turns(self) -> bool:
        """Whether negation matters in the data, as it does for opinions and does not for topics."""
        return self.slope < LARGEST_SLOPE


def log_ratios(counts: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """(words,) log-ratios of occurrences (2, words), positive for the second class, and how many standard errors.

    Each class has one occurrence more than was counted.
    """
    sums = counts.sum(axis=1, keepdims=True) + 1
    first, second = np.log((counts + 1.0) / sums)
    ratios: Numbers = second - first
    sure: Numbers = np.abs(ratios) / np.sqrt((1.0 / (counts + 1.0)).sum(0))
    return ratios, sure


def choose_words(contexts: Contexts, words: Sequence[str], rules: Grammar) -> Lexicon:
    """Choose words of each kind.

    Args:
        contexts: What was counted in the training rows.
        words: The words of the vocabulary.
        rules: How the language negates.
    """
    (bare, sure), (negated, shown) = log_ratios(contexts.bare), log_ratios(contexts.negated)
    often, seen = contexts.bare.sum(0), contexts.negated.sum(0)
    allowed = ~contexts.negators
    allowed[:FIRST_WORD] = False
    polar = allowed & (often >= LEAST_COUNT) & (np.abs(bare) >= LEAST_OPINION) & (sure >= LEAST_SURE)
    turned = allowed & (seen >= LEAST_SEEN) & (np.abs(negated) >= LEAST_NEGATED) & (shown >= LEAST_SHOWN)
    turned &= (np.sign(negated) != np.sign(bare)) | (np.abs(bare) < WEAK)
    left = negated * seen / (seen + FEW_SEEN) * np.sign(bare)
    assumed = polar & ~turned & (left < LEFT * np.abs(bare))
    speaks = np.where(turned, negated, -bare)
    counts = np.sqrt(contexts.total)
    kinds = _kinds(contexts, words, rules)
    return Lexicon(
        bare=_by_kind(kinds, dict.fromkeys(kinds, polar), bare, counts),
        negated=_by_kind(kinds, {kind: turned | (assumed & (kind in "AP")) for kind in kinds}, speaks, counts),
        topics=_topics(contexts, bare, rules),
        slope=_slope(bare, negated, seen, allowed),
    )


def _by_kind(kinds: Mapping[str, Mask], chosen: Mapping[str, Mask], opinion: Numbers, counts: Numbers) -> ByKind:
    found = {}
    for kind, members in kinds.items():
        for side in (0, 1):
            ids = np.flatnonzero(members & chosen[kind] & ((opinion > 0) == bool(side)))
            ids = ids[np.argsort(-(np.abs(opinion) * counts)[ids], kind="stable")][:MOST_WORDS]
            found[kind, side] = OpinionWords.of(ids, counts * np.abs(opinion))
    return found


def _kinds(contexts: Contexts, words: Sequence[str], rules: Grammar) -> dict[str, Mask]:
    """Which ids are of each kind: by the words before them, the first kind that fits."""
    total = np.maximum(contexts.total, 1)
    names = np.array([*[""] * FIRST_WORD, *words])
    free, found = ~np.char.endswith(names, rules.adverb), {}
    for kind in ("A", "V", "F", "N"):
        found[kind] = free & (contexts.after[kind] >= np.maximum(rules.shares[kind] * total, 3))
        free = free & ~found[kind]
    is_participle = np.char.endswith(names, rules.participle)
    found["P"] = found["A"] & is_participle
    found["A"] &= ~is_participle
    found["W"] = free
    return {kind: found[kind] for kind in OPINIONS}


def _topics(contexts: Contexts, opinion: Numbers, rules: Grammar) -> OpinionWords:
    total = np.maximum(contexts.total, 1)
    members = (np.abs(opinion) < NEUTRAL) & (contexts.after[TOPIC] >= rules.shares[TOPIC] * total)
    members &= (contexts.after["A"] < 0.01 * total) & ~contexts.negators
    members[:FIRST_WORD] = False
    ids = np.flatnonzero(members)
    ids = ids[np.argsort(-total[ids], kind="stable")][:MOST_TOPICS]
    return OpinionWords.of(ids, np.sqrt(contexts.total))


def _slope(bare: Numbers, negated: Numbers, seen: NDArray[np.int64], allowed: Mask) -> float:
    """How much of their opinion words keep after a negator; 1 if there are too few to tell."""
    known = allowed & (seen >= FEWEST_NEGATED) & (np.abs(bare) >= LEAST_OPINION)
    if known.sum() < FEWEST_WORDS:
        return 1.0
    weights = seen[known] * bare[known]
    return float((weights * negated[known]).sum() / (weights * bare[known]).sum())
