"""Character n-grams of the vocabulary's words, as further features of the wide part (Bojanowski et al. 2017).

A rare word shares its parts with frequent ones: "unwatchable" has "watch" and "able>". The n-grams of a word depend on
the word alone, so their hashes are computed once per vocabulary, and reading a row costs no string operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.models.wide.hashing import GOLDEN, mixed_all
from tenor.preparation.tokeniser.negation import NEGATED, plain

SHORTEST = 3  # characters, where the marks at both ends of a word count
IMPORTANCE = 0.4  # of a character n-gram, relative to that of an n-gram of words
_BLOCK = 4096  # words whose n-grams are hashed at a time: a character takes about 500 bytes meanwhile
_SEED = np.uint64(0xC4CEB9FE1A85EC53)  # where the hash of a character n-gram starts; that of n-grams of words: 0
_NEGATED_SEED = np.uint64(0x9FB21C651E98DF25)  # in a negated word, so that "bad" and "not bad" share nothing


@dataclass(frozen=True)
class Characters:
    """The hashed character n-grams of each token id: those of id i are hashes[starts[i] : starts[i + 1]]."""

    starts: NDArray[np.int64]  # (ids + 1,)
    hashes: NDArray[np.uint64]

    def count(self, tokens: NDArray[Any]) -> int:
        """The number of character n-grams of all tokens together."""
        if not len(self.hashes):
            return 0
        known = tokens[tokens < len(self.starts) - 1]
        return int((self.starts[known + 1] - self.starts[known]).sum())

    def of(self, tokens: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The character n-grams of tokens: the place of the token of each, in rising order, and its hash."""
        known = np.where((tokens >= 0) & (tokens < len(self.starts) - 1), tokens, 0)
        counts = self.starts[known + 1] - self.starts[known]
        places = np.repeat(np.arange(len(tokens)), counts)
        inside = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, self.hashes[self.starts[known][places] + inside]

    @property
    def most(self) -> int:
        """The largest number of character n-grams of a token."""
        return int(np.diff(self.starts).max(initial=0))


NO_CHARACTERS = Characters(np.zeros(1, np.int64), np.empty(0, np.uint64))


def hash_characters(words: Sequence[str], first_id: int, longest: int) -> Characters:
    """Hash the character n-grams of words, repeated ones included.

    Args:
        words: The words of a vocabulary.
        first_id: The id of the first word; smaller ids have no character n-grams.
        longest: Characters of the longest n-gram; 0 for none.
    """
    if longest == 0:
        return NO_CHARACTERS
    blocks = [_hash_block(words[at : at + _BLOCK], longest) for at in range(0, len(words), _BLOCK)]
    counts = np.concatenate([np.zeros(first_id + 1, np.int64), *(counts for counts, _ in blocks)])
    hashes = np.concatenate([np.zeros(0, np.uint64), *(hashes for _, hashes in blocks)])
    return Characters(np.cumsum(counts, dtype=np.int64), hashes)


def _hash_block(words: Sequence[str], longest: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The number of n-grams of each word, and their hashes."""
    plain_words = [plain(word) for word in words]
    marked = "".join(f"<{word}>" for word in plain_words)
    codes = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    sizes = np.array([len(word) + 2 for word in plain_words], np.int64)
    is_negated = np.array([word.startswith(NEGATED) for word in words], bool)
    ends = np.cumsum(sizes)
    left = np.repeat(ends, sizes) - np.arange(len(codes))  # characters from each place to the end of its word
    following = np.concatenate([codes, np.zeros(longest, np.uint64)]) + np.uint64(1)
    states, found, fits = np.repeat(np.where(is_negated, _NEGATED_SEED, _SEED), sizes), [], []
    for size in range(1, longest + 1):
        states = mixed_all(states * np.uint64(GOLDEN) + following[size - 1 : size - 1 + len(codes)])
        if size >= min(SHORTEST, longest):
            found.append(states)
            fits.append(left >= size)
    is_real = np.stack(fits, axis=1)  # (characters, sizes)
    counts = np.add.reduceat(is_real.sum(axis=1), ends - sizes)
    return counts, np.stack(found, axis=1)[is_real]
