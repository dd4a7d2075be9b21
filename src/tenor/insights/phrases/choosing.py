"""Which phrases drive one side, which ones say the same, and which become more frequent. Pure functions of counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.insights.phrases.counting import BITS, BucketCounts, ExactCounts
from tenor.insights.phrases.words import NEGATIONS, NOT, stems_of
from tenor.preparation.tokeniser.negation import plain, readable
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD

NEGATIVE, POSITIVE = "negative", "positive"
FEWEST_ROWS = 5  # that a phrase must be in
BEST = 20_000  # buckets per side that are counted exactly
CANDIDATES = 600  # phrases per side that are grouped
SURE = 3.0  # standard errors above chance that a phrase of a side must have
SIGNIFICANCE = 0.01  # chance that any phrase rises by accident
LONGER = 0.1  # by how much each further word of a rising phrase makes up for a lower z-score
RISING_RATIO = 1.5  # smallest growth of a rising phrase
NEGATED = 0.4  # share of a phrase's rows with a negation before it, above which only the negated forms count
CORE = 0.3  # score of a single word, relative to the best phrase of its group, to attract longer phrases
INSIDE = 0.5  # share of a phrase's rows that have a longer phrase, above which it belongs to that one
FIRST = 3  # members of a group that a phrase is compared with
ALIKE = 0.3  # similarity of words that can stand for each other

Floats = NDArray[np.float64]
Similarity = Callable[[int, int], float]


@dataclass(frozen=True)
class Phrase:
    """One phrase with its figures."""

    number: int  # among the phrases that were counted exactly
    tokens: tuple[int, ...]
    words: tuple[str, ...]  # without the marks of negated words
    text: str
    rows: int
    strength: float  # mean contribution towards its side, in logits
    stems: tuple[str, ...]

    @property
    def score(self) -> float:
        """Contribution × volume."""
        return self.strength * self.rows


def choose_buckets(counts: BucketCounts, share: float) -> NDArray[np.bool_]:
    """The buckets with the most negative or positive rows beyond chance, and with the most significant growth.

    Args:
        counts: The counts of all buckets.
        share: The share of negative rows among all rows.
    """
    chosen = np.zeros(1 << BITS, np.bool_)
    held = np.flatnonzero(counts.rows >= FEWEST_ROWS)
    rows, negative = counts.rows[held].astype(np.float64), counts.negative[held].astype(np.float64)
    excess = negative - rows * share
    sure = np.abs(excess) > SURE * np.sqrt(rows * share * (1.0 - share))
    for sign in (1.0, -1.0):
        order = np.argsort(np.where(sure, -sign * excess, np.inf), kind="stable")[:BEST]
        chosen[held[order[(sign * excess[order] > 0) & sure[order]]]] = True
    before, recent = counts.recent[:, held].astype(np.float64)
    rows_before, rows_recent = counts.dated.tolist()
    if not rows_before or not rows_recent:
        return chosen
    z = growth(before, recent, rows_before, rows_recent)
    order = np.argsort(-z, kind="stable")[:BEST]
    chosen[held[order[z[order] > sure_growth(len(held))]]] = True
    return chosen


def growth(before: Floats, recent: Floats, rows_before: float, rows_recent: float) -> Floats:
    """How surprising the number of recent rows of each phrase is: the signed root of its deviance, about a z-score.

    If nothing had changed, the recent rows of a phrase would be a random part of all its rows. The probability
    of at least that many is at most exp(-z² / 2) (Chernoff 1952), also for phrases in few rows, where a normal test
    fails.
    """
    total = before + recent
    expected = rows_recent / (rows_before + rows_recent)
    share = recent / np.maximum(total, 1.0)
    deviance = np.zeros(len(total))
    for part, chance in ((share, expected), (1.0 - share, 1.0 - expected)):
        some = part > 0
        deviance[some] += (part * total)[some] * np.log(part[some] / chance)
    z: Floats = np.sign(share - expected) * np.sqrt(2.0 * np.maximum(deviance, 0.0))
    return z


def sure_growth(num_tested: int) -> float:
    """The z-score above which growth is significant at 1 %, if so many phrases are tested (Bonferroni)."""
    return math.sqrt(2.0 * math.log(max(num_tested, 1) / SIGNIFICANCE))


def candidates(counts: ExactCounts, words: Sequence[str], side: str, share: float, has_weights: bool) -> list[Phrase]:
    """The phrases that drive one side, best first.

    A phrase belongs to a side if far more of its rows than of all rows are on that side: at least half of the way from
    the share of all rows to 1.

    Args:
        counts: The exact counts.
        words: The words of the vocabulary.
        side: NEGATIVE or POSITIVE.
        share: The share of this side among all rows.
        has_weights: Whether contributions are known; if not, log-odds of the predictions take their place.
    """
    rows, negative, contribution = counts.figures[:, 0], counts.figures[:, 1], counts.figures[:, 2]
    own = negative if side == NEGATIVE else rows - negative
    sign = -1.0 if side == NEGATIVE else 1.0
    strength = sign * contribution / np.maximum(rows, 1) if has_weights else log_odds(own, rows, share)
    error = SURE * np.sqrt(rows * share * (1.0 - share))
    good = (rows >= FEWEST_ROWS) & (own >= rows * (1.0 + share) / 2.0) & (own - rows * share > error) & (strength > 0)
    order = np.flatnonzero(good & ~_mostly_negated(counts, words))
    order = order[np.argsort(-(strength * rows)[order], kind="stable")][:CANDIDATES]
    return [make_phrase(counts, words, int(number), float(strength[number])) for number in order]


def _mostly_negated(counts: ExactCounts, words: Sequence[str]) -> NDArray[np.bool_]:
    """Whether most rows with a phrase have a negation just before it, as "working properly" in "not working properly".

    Such a phrase says the opposite of what it means in these reviews, so only its negated forms are candidates.
    """
    negations = {number + FIRST_WORD for number, word in enumerate(words) if word in NEGATIONS}
    rows = counts.figures[:, 0]
    negated: dict[tuple[int, ...], float] = {}
    every = [tuple(tokens[tokens > 0].tolist()) for tokens in counts.words]
    for tokens, own in zip(every, rows.tolist(), strict=True):
        if tokens[0] in negations:
            for start in range(1, len(tokens)):
                negated[tokens[start:]] = negated.get(tokens[start:], 0.0) + own
    return np.array([negated.get(tokens, 0.0) >= NEGATED * own for tokens, own in zip(every, rows, strict=True)], bool)


def log_odds(own: Floats, rows: Floats, share: float) -> Floats:
    """The log-odds of a phrase's rows against those of all rows, with one pseudo-row of each kind."""
    odds: Floats = np.log((own + 1.0) / (rows - own + 1.0)) - math.log(share / (1.0 - share))
    return odds


def make_phrase(counts: ExactCounts, words: Sequence[str], number: int, strength: float) -> Phrase:
    tokens = tuple(int(token) for token in counts.words[number] if token)
    found = [words[token - FIRST_WORD] for token in tokens]
    spelled, text = tuple(map(plain, found)), " ".join(readable(found))
    return Phrase(number, tokens, spelled, text, int(counts.figures[number, 0]), strength, stems_of(spelled))


def group(phrases: Sequence[Phrase], similar: Similarity) -> list[list[Phrase]]:
    """Put phrases together that say the same. The best phrase of a group comes first, and the best group too.

    A phrase joins the first group for which one of these is true:

    - The group has a strong single word of the phrase ("waste product" joins "waste", "waste of money").
    - The group has a longer phrase in which the phrase mostly occurs.
    - Its leader has the same stems as the phrase, contains the phrase, or is contained in the phrase.
    - One of its first members differs from the phrase in one word that can stand for the other one ("quit working"
      joins "stopped working").

    Two phrases that share only a negation say different things ("not fit", "not buy").
    """
    groups: list[list[Phrase]] = []
    for phrase in phrases:
        for members in groups:
            leader = members[0]
            if (
                _overlap(phrase, leader)
                or any(_swaps(phrase, member, similar) for member in members[:FIRST])
                or any(_belongs(phrase, member, leader) for member in members)
            ):
                members.append(phrase)
                break
        else:
            groups.append([phrase])
    return groups


def _belongs(phrase: Phrase, member: Phrase, leader: Phrase) -> bool:
    """Whether a member is a strong single word of the phrase, or the phrase occurs mostly inside the member."""
    if len(member.stems) == 1 and member.stems[0] in phrase.stems and member.score >= CORE * leader.score:
        return True
    return contains(member.stems, phrase.stems) and member.rows >= INSIDE * phrase.rows


def _overlap(one: Phrase, other: Phrase) -> bool:
    """Whether the phrases have the same stems, or one contains the other."""
    same = set(one.stems) == set(other.stems)
    return same or contains(one.stems, other.stems) or contains(other.stems, one.stems)


def _swaps(one: Phrase, leader: Phrase, similar: Similarity) -> bool:
    """Whether the phrases differ in one word that can stand for the other one, beside a word that they share."""
    if len(one.stems) != len(leader.stems) or len(one.stems) < 2:
        return False
    differ = [(a, b) for a, b in zip(one.stems, leader.stems, strict=True) if a != b]
    if len(differ) != 1 or not {*one.stems} & {*leader.stems} - {NOT}:
        return False
    first, second = (_token_of(phrase, stem) for phrase, stem in zip((one, leader), differ[0], strict=True))
    return similar(first, second) >= ALIKE


def contains(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    """Whether `shorter` stands in `longer` without a gap."""
    size = len(shorter)
    return any(tuple(longer[i : i + size]) == tuple(shorter) for i in range(len(longer) - size + 1))


def _token_of(phrase: Phrase, wanted: str) -> int:
    return next(token for token, word in zip(phrase.tokens, phrase.words, strict=True) if stems_of([word]) == (wanted,))


def title(members: Sequence[Phrase]) -> Phrase:
    """The phrase that names a group: a longer one tells more, if it is not much weaker than the best one."""
    return max(members, key=lambda phrase: phrase.score * (1.0 + 1.0 * (min(len(phrase.words), 3) - 1)))


def rising(counts: ExactCounts, words: Sequence[str], dated: tuple[int, int], limit: float, most: int) -> list[Phrase]:
    """The phrases whose share grew most significantly in the last period; `strength` is the z-score.

    Args:
        counts: The exact counts.
        words: The words of the vocabulary.
        dated: All rows before the last period, and all rows in it.
        limit: The smallest z-score.
        most: How many phrases to return.
    """
    rows_before, rows_recent = dated
    if not rows_before or not rows_recent:
        return []
    before, recent = counts.figures[:, 3], counts.figures[:, 4]
    z = growth(before, recent, rows_before, rows_recent)
    ratio = (recent / rows_recent) / np.maximum(before, 0.5) * rows_before
    good = np.flatnonzero((z > limit) & (ratio >= RISING_RATIO) & (recent >= FEWEST_ROWS))
    kept: list[Phrase] = []
    num_words = (counts.words[good] > 0).sum(axis=1)  # of phrases that rise alike, the longer one tells more
    for number in good[np.argsort(-z[good] * (1.0 + LONGER * (num_words - 1)), kind="stable")][:CANDIDATES]:
        phrase = make_phrase(counts, words, int(number), float(z[number]))
        if not any({*phrase.stems} & {*other.stems} - {NOT} for other in kept):
            kept.append(phrase)
        if len(kept) == most:
            break
    return kept
