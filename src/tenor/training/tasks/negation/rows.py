"""Short rows made from the patterns and the words, and rows of the data followed by such rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.preparation.tokeniser.negation import NEGATED, negated, plain
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, UNKNOWN
from tenor.store.ragged import copy_rows
from tenor.store.reader import Split
from tenor.training.tasks.negation.contexts import RowSource, count
from tenor.training.tasks.negation.grammar import OPINIONS, TOPIC, Grammar, Pattern, grammar
from tenor.training.tasks.negation.lexicon import Lexicon, OpinionWords, choose_words

STREAM = 0x6E6567  # of the random numbers, different from those of the order of rows
FLIPPED, KEPT = 0.45, 0.15  # share of sentences that turn an opinion around, and that leave it although they negate
BEFORE, AFTER = 0.15, 0.25  # share of sentences with words around them
SECOND, FRAGMENT = 0.3, 0.3  # share of rows with a second sentence, and with some words of a real row
FRAGMENT_LENGTHS = (3, 10)
FEWEST = 2  # words of a kind for each choice
MOST_ROWS = 50_000  # more would show little new
TRIES = 20  # at a sentence whose words are all in the vocabulary

Ids = NDArray[np.int32]
NO_WORDS: Mapping[str, OpinionWords] = {}


@dataclass(frozen=True)
class AddedRows:
    """Rows of token ids, one after another."""

    tokens: Ids
    starts: NDArray[np.int64]  # (rows + 1,)
    labels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)


class WithRows:
    """The rows of a split, and after them added ones; read like a split."""

    def __init__(self, rows: Split, added: AddedRows) -> None:
        self._rows, self._added, self.num_read = rows, added, len(rows)
        self.lengths: Ids = np.concatenate([rows.lengths, np.diff(added.starts).astype(np.int32)])
        self.labels: NDArray[np.uint8] = np.concatenate([rows.labels, added.labels])

    def __len__(self) -> int:
        return len(self.labels)

    def gather(self, rows: NDArray[np.int64]) -> tuple[Ids, Ids]:
        """(tokens, lengths) of the given rows; the tokens follow each other in the order of `rows`."""
        rows = np.asarray(rows, np.int64)
        lengths, is_read = self.lengths[rows], rows < len(self._rows)
        ends = np.cumsum(lengths, dtype=np.int64)
        tokens = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
        tokens[np.repeat(is_read, lengths)] = self._rows.gather(rows[is_read])[0]
        starts, places = self._added.starts[rows[~is_read] - len(self._rows)], (ends - lengths)[~is_read]
        copy_rows(self._added.tokens, starts, lengths[~is_read], places, tokens)
        return tokens, lengths


class PlainRows:
    """The rows of a split with each negated word as the word itself."""

    def __init__(self, rows: Split, words: Sequence[str]) -> None:
        ids = {word: place for place, word in enumerate(words, FIRST_WORD)}
        self._rows, self.labels, self.lengths = rows, rows.labels, rows.lengths
        self._plain = np.arange(len(words) + FIRST_WORD, dtype=np.int32)
        self._plain[FIRST_WORD:] = [ids.get(plain(word), UNKNOWN) for word in words]

    def __len__(self) -> int:
        return len(self._rows)

    def gather(self, rows: NDArray[np.int64]) -> tuple[Ids, Ids]:
        """(tokens, lengths) of the given rows; the tokens follow each other in the order of `rows`."""
        tokens, lengths = self._rows.gather(rows)
        return self._plain[tokens], lengths


def make_lexicon(rows: RowSource, words: Sequence[str], rules: Grammar) -> Lexicon:
    """Count the rows and choose words."""
    ids = {word: place for place, word in enumerate(words, FIRST_WORD)}
    num_words = len(words) + FIRST_WORD
    signs = {kind: _members(found, ids, num_words) for kind, found in rules.signs.items()}
    contexts = count(rows, num_words, _members(rules.negators, ids, num_words), signs)
    return choose_words(contexts, words, rules)


def _members(names: Sequence[str], ids: Mapping[str, int], num_words: int) -> NDArray[np.bool_]:
    found = np.zeros(num_words, bool)
    found[[ids[name] for name in names if name in ids]] = True
    return found


class Writer:
    """Writes rows with random choices of its own."""

    def __init__(self, rows: RowSource, words: Sequence[str], rules: Grammar, lexicon: Lexicon, seed: int) -> None:
        self.rng = np.random.Generator(np.random.Philox(key=[seed, STREAM]))
        self.rows, self.rules, self.lexicon = rows, rules, lexicon
        self.words, self.negates = words, any(word.startswith(NEGATED) for word in words)
        self.ids = {word: place for place, word in enumerate(words, FIRST_WORD)}
        self.negators = _members(rules.negators, self.ids, len(words) + FIRST_WORD)
        self.kinds, self.bounds = _kinds(lexicon)
        self.by_label = [np.flatnonzero(rows.labels == label) for label in (0, 1)]

    def write(self, num_rows: int) -> AddedRows:
        """Rows with the labels 0 and 1 in turns."""
        if not self.kinds or not num_rows:
            return AddedRows(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint8))
        labels = np.arange(num_rows) % 2
        found = [self._negated(self._row(int(label))) for label in labels]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in found])])
        tokens = np.array([token for row in found for token in row], np.int32)
        return AddedRows(tokens, starts.astype(np.int64), labels.astype(np.uint8))

    def _negated(self, row: list[int]) -> list[int]:
        """The row as the tokeniser would have given it."""
        if not self.negates:
            return row
        words = ("" if token < FIRST_WORD else self.words[token - FIRST_WORD] for token in row)
        return [self.ids.get(word, UNKNOWN) for word in negated(words)]

    def _row(self, label: int) -> list[int]:
        row = self._sentence(label)
        chance = self.rng.random()
        if chance < SECOND:
            row = row + self._sentence(label)
        elif chance < SECOND + FRAGMENT:
            other = self._fragment(label)
            row = row + other if self.rng.random() < 0.7 else other + row
        return row

    def _sentence(self, label: int) -> list[int]:
        rng = self.rng
        for _ in range(TRIES):
            kind = self.kinds[int(np.searchsorted(self.bounds, rng.random(), "right"))]
            number, rules = rng.random(), self.rules
            flips = number < FLIPPED
            patterns = (rules.flip if flips else rules.keep if number < FLIPPED + KEPT else rules.plain)[kind]
            drawn = self.lexicon.negated if flips else self.lexicon.bare
            words = self._fill(patterns[rng.integers(len(patterns))], {one: drawn[one, label] for one in OPINIONS})
            if rng.random() < BEFORE:
                words = self._fill(self.rules.before[rng.integers(len(self.rules.before))]) + words
            if rng.random() < AFTER:
                words += self._fill(self.rules.after[rng.integers(len(self.rules.after))])
            if all(word != UNKNOWN for word in words):
                break
        return words

    def _fill(self, pattern: Pattern, words: Mapping[str, OpinionWords] = NO_WORDS) -> list[int]:
        found = []
        for choice in pattern:
            for name in choice[self.rng.integers(len(choice))]:
                if name in words:
                    found.append(self._draw(words[name]))
                elif name == TOPIC:
                    found.append(self._draw(self.lexicon.topics))
                else:
                    found.append(self.ids.get(name, UNKNOWN))
        return found

    def _draw(self, words: OpinionWords) -> int:
        return words.draw(self.rng.random()) if len(words.ids) else UNKNOWN

    def _fragment(self, label: int) -> list[int]:
        """Some words of a real row with this label, without negators."""
        rows, rng = self.by_label[label], self.rng
        row = int(rows[rng.integers(len(rows))])
        tokens, _ = self.rows.gather(np.array([row]))
        size = int(rng.integers(*FRAGMENT_LENGTHS))
        start = int(rng.integers(max(1, len(tokens) - size + 1)))
        piece = tokens[start : start + size]
        return [] if self.negators[piece].any() else piece.tolist()


def _kinds(lexicon: Lexicon) -> tuple[list[str], NDArray[np.float64]]:
    """The kinds that have words for every choice, and how often each one is drawn, as bounds between 0 and 1."""
    sides = (*lexicon.bare.items(), *lexicon.negated.items())
    sizes = {kind: [len(words.ids) for (own, _), words in sides if own == kind] for kind in OPINIONS}
    kinds = [kind for kind, found in sizes.items() if min(found) >= FEWEST]
    weights = np.sqrt([float(sum(sizes[kind])) for kind in kinds])
    return kinds, np.cumsum(weights) / weights.sum() if kinds else weights


def make_rows(rows: Split, words: Sequence[str], share: float, seed: int) -> AddedRows:
    """Rows that show what negation does; none if it does nothing in the data, as far as the rows tell.

    Args:
        rows: The training rows, of two classes.
        words: The words of the vocabulary.
        share: The number of rows to make, as a share of the training rows.
        seed: Determines the rows.
    """
    rules, num_rows = grammar("english"), min(round(share * len(rows)), MOST_ROWS)
    rows_without_marks = PlainRows(rows, words)
    lexicon = make_lexicon(rows_without_marks, words, rules)
    return Writer(rows_without_marks, words, rules, lexicon, seed).write(num_rows if lexicon.turns else 0)
