"""Words as characters, for scripts in which a character is about a syllable or a word.

Korean, Chinese, Japanese or Thai words carry endings or are not separated by spaces, so most of them are rare. Their
characters are not, and n-grams of characters stand for words, endings and phrases alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.compiled import compiled
from tenor.preparation.tokeniser.negation import NEGATED
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, UNKNOWN, Vocabulary
from tenor.store.ragged import is_outside

CODE_POINTS = 0x110000
_NEGATED = ord(NEGATED)  # characters are not negated, so the mark of a word is left out
# The first and the last code point of scripts that are read by character
SCRIPTS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3130, 0x318F),  # Hangul letters of the compatibility block
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x9FFF),  # Chinese characters
    (0xAC00, 0xD7FF),  # Hangul syllables
    (0xF900, 0xFAFF),  # Chinese characters of the compatibility block
    (0xFF66, 0xFFDC),  # narrow Katakana and Hangul
    (0x20000, 0x323AF),  # rare Chinese characters
)


@dataclass(frozen=True)
class Spelling:
    """The ids of the characters of each word: word w has ids[starts[w]:starts[w + 1]]."""

    ids: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    @property
    def num_words(self) -> int:
        return len(self.starts) - 1

    def extended(self, more: Spelling) -> Spelling:
        """These words, and more."""
        if not more.num_words:
            return self
        return Spelling(
            np.concatenate([self.ids, more.ids]), np.concatenate([self.starts, more.starts[1:] + self.starts[-1]])
        )


NOTHING_SPELLED = Spelling(np.empty(0, np.int32), np.zeros(1, np.int64))


class Speller:
    """Spells words with the characters of a vocabulary. Other characters are unknown."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids = np.full(CODE_POINTS, UNKNOWN, np.int32)
        self._ids[[ord(word) for word in vocabulary.words if len(word) == 1]] = [
            number + FIRST_WORD for number, word in enumerate(vocabulary.words) if len(word) == 1
        ]

    def __call__(self, words: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> Spelling:
        """Spell packed words."""
        points, bounds = code_points(words, starts)
        return Spelling(self._ids[points], bounds)


def code_points(
    words: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """(code points of packed words in UTF-8, where each word starts among them)."""
    points, bounds = np.empty(int(starts[-1] - starts[0]), np.int32), np.zeros(len(starts), np.int64)
    _decode(words, starts, points, bounds)
    return points[: bounds[-1]], bounds


def count_characters(
    words: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How often each code point occurs in words that occur so often."""
    points, bounds = code_points(words, starts)
    totals = np.zeros(CODE_POINTS, np.int64)
    np.add.at(totals, points, np.repeat(counts, np.diff(bounds)))
    return totals


def is_read_by_character(counts: npt.NDArray[np.int64]) -> bool:
    """Whether most characters belong to scripts that are read by character; `counts` has one number per code point."""
    return 2 * sum(int(counts[first : last + 1].sum()) for first, last in SCRIPTS) > int(counts.sum())


def spelled_lengths(
    tokens: npt.NDArray[Any],
    spelling: Spelling,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    limit: int,
) -> npt.NDArray[np.int64]:
    """The number of characters of each row of word ids, at most `limit`."""
    found = np.empty(len(starts), np.int64)
    _measure(tokens, spelling.starts, starts, lengths, limit, found)
    return found


@compiled
def _decode(words: Any, starts: Any, points: Any, bounds: Any) -> None:
    at = 0
    for word in range(len(starts) - 1):
        place, end = starts[word], starts[word + 1]
        if is_outside(place, end - place, words.shape[0]):
            raise IndexError("a word outside its bytes")
        while place < end:
            first = np.int32(words[place])
            size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            point = first if size == 1 else first & (0x7F >> size)
            for more in range(1, size):
                if place + more < end:
                    point = (point << 6) | (np.int32(words[place + more]) & 0x3F)
            place += size
            if point != _NEGATED:
                points[at] = min(point, CODE_POINTS - 1)
                at += 1
        bounds[word + 1] = at


@compiled
def _measure(tokens: Any, bounds: Any, starts: Any, lengths: Any, limit: int, found: Any) -> None:
    for row in range(starts.shape[0]):
        first, length, total = starts[row], lengths[row], 0
        if is_outside(first, length, tokens.shape[0]):
            raise IndexError("a row outside its array")
        for i in range(first, first + length):
            word = tokens[i]
            if word < 0 or word + 1 >= bounds.shape[0]:
                raise IndexError("a word that is not in the table")
            total += bounds[word + 1] - bounds[word]
        found[row] = min(total, limit)


@compiled
def spell_rows(tokens: Any, ids: Any, bounds: Any, starts: Any, places: Any, lengths: Any, out: Any) -> None:
    """Write the first characters of each row to `out`, from the row's place on: as many as `lengths` says.

    The words of a row begin at its start in `tokens`, and it has enough of them.
    """
    for row in range(starts.shape[0]):
        at, to, left = starts[row], places[row], lengths[row]
        if is_outside(to, left, out.shape[0]):
            raise IndexError("a row outside its array")
        while left > 0:
            if at < 0 or at >= tokens.shape[0]:
                raise IndexError("a row outside its array")
            word = tokens[at]
            if word < 0 or word + 1 >= bounds.shape[0]:
                raise IndexError("a word that is not in the table")
            for i in range(bounds[word], min(bounds[word + 1], bounds[word] + left)):
                out[to] = ids[i]
                to += 1
                left -= 1
            at += 1
