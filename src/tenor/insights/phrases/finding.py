"""The phrases of all rows: count, choose, group, follow; four passes over token ids in fixed memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.insights.phrases.choosing import (
    FEWEST_ROWS,
    NEGATIVE,
    POSITIVE,
    Phrase,
    candidates,
    choose_buckets,
    group,
    rising,
    sure_growth,
    title,
)
from tenor.insights.phrases.counting import BucketCounts, ExactCounts, PhraseRows
from tenor.insights.phrases.similar import WordContexts
from tenor.insights.phrases.tracing import Member, Trace, Tracer
from tenor.insights.phrases.words import kinds_of
from tenor.insights.row_store import RowStore
from tenor.insights.scoring import Contributions
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD

SPARE = 3  # times as many groups are followed as are listed, because the order can change
SHOWN_EXAMPLES = 3
SHOWN_VARIANTS = 12
SNIPPET = 240  # characters of an example


@dataclass(frozen=True)
class Periods:
    """The period of each row (-1: none), and the names of all periods in order."""

    of_rows: NDArray[np.int32]
    names: list[str]

    @property
    def recent(self) -> NDArray[np.int8]:
        """1 for rows of the last period, 0 for earlier ones, -1 for rows without a date or if there is one period."""
        if len(self.names) < 2:
            return np.full(len(self.of_rows), -1, np.int8)
        last = len(self.names) - 1
        return np.where(self.of_rows < 0, -1, self.of_rows == last).astype(np.int8)


@dataclass(frozen=True)
class _Group:
    side: str  # NEGATIVE, POSITIVE or "" for rising phrases
    members: Sequence[Phrase]


@dataclass(frozen=True)
class PhraseInput:
    """What phrases are found in."""

    rows: RowStore
    words: Sequence[str]  # of the vocabulary
    weights: Contributions | None  # of the model's n-grams
    periods: Periods
    is_copy: NDArray[np.bool_]  # rows that do not count, because they repeat other rows


class PhraseFinder:
    """Finds the `most` best phrases of each kind."""

    def __init__(self, given: PhraseInput, most: int) -> None:
        self.rows, self.words, self.weights, self.periods = given.rows, given.words, given.weights, given.periods
        self.most, self.is_copy = most, given.is_copy
        self.kinds = kinds_of(given.words)
        self.recent = np.where(given.is_copy, -1, given.periods.recent).astype(np.int8)

    def find(self) -> dict[str, list[dict[str, Any]]]:
        """The lists `negative`, `positive` and `rising`, each with the best phrases first."""
        share = float(np.clip(self.rows.negative.mean(), 1e-3, 1 - 1e-3)) if len(self.rows) else 0.5
        buckets = BucketCounts()
        for _, block, _ in self._blocks(weighted=False):
            buckets.add(block, self.kinds)
        exact = ExactCounts(choose_buckets(buckets, share))
        for _, block, weights in self._blocks():
            exact.add(block, self.kinds, weights)
        shares = {NEGATIVE: share, POSITIVE: 1.0 - share}
        found = {
            side: candidates(exact, self.words, side, own, self.weights is not None) for side, own in shares.items()
        }
        contexts = self._contexts([phrase for phrases in found.values() for phrase in phrases])
        groups = [
            _Group(side, members)
            for side, phrases in found.items()
            for members in group(phrases, contexts.similarity)[: SPARE * self.most]
        ]
        before, recent = (int((self.recent == value).sum()) for value in (0, 1))
        limit = sure_growth(buckets.num_tested(FEWEST_ROWS))
        groups += [_Group("", [phrase]) for phrase in rising(exact, self.words, (before, recent), limit, self.most)]
        return self._described(groups, self._trace(groups), (before, recent))

    def _blocks(self, weighted: bool = True) -> Iterator[tuple[int, PhraseRows, NDArray[np.float32]]]:
        """(number of the first row, rows, contributions of their n-grams)."""
        for block in self.rows.blocks("tokens"):
            own = block.rows
            is_copy = self.is_copy[own]  # a copy stays a row, but without words
            tokens, lengths = block.values, np.where(is_copy, 0, block.lengths)
            if is_copy.any():
                tokens = tokens[np.repeat(~is_copy, block.lengths)]
            rows = PhraseRows(tokens, np.cumsum(lengths, dtype=np.int64), self.rows.negative[own], self.recent[own])
            weights = np.zeros((len(tokens), 0), np.float32)
            if weighted and self.weights is not None:
                weights = self.weights(tokens, lengths.astype(np.int32))
            yield block.first, rows, weights

    def _contexts(self, phrases: Sequence[Phrase]) -> WordContexts:
        contexts = WordContexts(
            sorted({token for phrase in phrases for token in phrase.tokens}), len(self.words) + FIRST_WORD
        )
        contexts.count((rows.tokens, rows.ends) for _, rows, _ in self._blocks(weighted=False))
        return contexts

    def _trace(self, groups: Sequence[_Group]) -> Trace:
        # The same phrase may drive a side and rise; a phrase has one place in the table, so the sides come first.
        members = [
            Member(number, phrase.tokens, phrase.strength)
            for number, some in enumerate(groups)
            if some.side
            for phrase in some.members
        ]
        signs = {NEGATIVE: -1.0, POSITIVE: 1.0, "": 0.0}
        sides = Tracer(members, [signs[some.side] for some in groups], len(self.periods.names))
        rises = [Member(n, g.members[0].tokens, 1.0) for n, g in enumerate(groups) if not g.side]
        others = Tracer(rises, [0.0] * len(groups), len(self.periods.names))
        for first, rows, weights in self._blocks():
            periods = self.periods.of_rows[first : first + len(rows.ends)]
            sides.add(rows, periods, first, weights)
            if rises:
                others.add(rows, periods, first, weights)
        pick = np.array([bool(some.side) for some in groups], bool)

        def both(name: str) -> NDArray[Any]:
            one, two = getattr(sides.trace, name), getattr(others.trace, name)
            chosen: NDArray[Any] = np.where(pick.reshape(-1, *[1] * (one.ndim - 1)), one, two)
            return chosen

        return Trace(both("rows"), both("negative"), both("contribution"), both("by_period"), both("examples"))

    def _described(
        self, groups: Sequence[_Group], trace: Trace, dated: tuple[int, int]
    ) -> dict[str, list[dict[str, Any]]]:
        lists: dict[str, list[tuple[float, dict[str, Any]]]] = {NEGATIVE: [], POSITIVE: [], "rising": []}
        for number, some in enumerate(groups):
            rows = int(trace.rows[number])
            if not rows:
                continue
            name = title(some.members) if some.side else some.members[0]
            values: dict[str, Any] = {
                "phrase": name.text,
                "rows": rows,
                "negative_share": float(trace.negative[number]) / rows,
            }
            if some.side:
                score = float(trace.contribution[number])
                values |= {"contribution": score / rows, "score": score}
                others = sorted((p for p in some.members if p is not name), key=lambda p: -p.rows)
                values["variants"] = [{"phrase": p.text, "rows": p.rows} for p in others[:SHOWN_VARIANTS]]
            else:
                score = name.strength
                recent = int(trace.by_period[number, -1])
                values |= {
                    "rows_recent": recent,
                    "share_recent": recent / dated[1],
                    "share_before": (int(trace.by_period[number].sum()) - recent) / dated[0],
                    "z": score,
                }
            if self.periods.names:
                values["by_period"] = trace.by_period[number].tolist()
            values["examples"] = self._examples(trace.examples[number], [p.words for p in some.members])
            lists[some.side or "rising"].append((score, values))
        return {
            side: [values for _, values in sorted(found, key=lambda pair: -pair[0])[: self.most]]
            for side, found in lists.items()
        }

    def _examples(self, rows: NDArray[np.int64], phrases: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for row in rows[rows >= 0].tolist():
            text = " ".join(self.rows.text(row).split())
            if text.casefold() not in found and len(found) < SHOWN_EXAMPLES:
                file, line = self.rows.place(row)
                shown = snippet(text, phrases)
                chance = float(self.rows.negative[row])
                found[text.casefold()] = {"file": file, "line": line, "text": shown, "negative": chance}
        return list(found.values())


def snippet(text: str, phrases: Sequence[Sequence[str]]) -> str:
    """The part of a text around the first of these phrases that it contains."""
    for words in phrases:
        found = re.search(r"\W+".join(map(re.escape, words)), text, re.IGNORECASE)
        if found:
            start = max(0, min(found.start() - SNIPPET // 3, len(text) - SNIPPET))
            return f"{'…' if start else ''}{text[start : start + SNIPPET]}{'…' if start + SNIPPET < len(text) else ''}"
    return text if len(text) <= SNIPPET else f"{text[:SNIPPET]}…"
