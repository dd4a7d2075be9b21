"""Words after a negator as words of their own: "not bad at all" becomes "not ¬bad ¬at ¬all".

So a word and the same word after a negator have weights and vectors of their own (Das and Chen 2001; Pang, Lee and
Vaithyanathan 2002). The negators are English. Texts in other languages do not contain them and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.compiled import compiled, inlined
from tenor.preparation.tokeniser.lookup import MAX_WORD_BYTES
from tenor.preparation.tokeniser.words import WordTable, pack, pick, unpack

NEGATED = "¬"  # marks a negated word; the tokeniser never keeps this character, so no other word contains it
SCOPE = 3  # tokens after a negator that are negated

_ENGLISH = """
    not no never nothing nobody none neither nor nowhere without hardly barely scarcely cannot
    don't doesn't didn't isn't wasn't aren't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't ain't
    dont doesnt didnt isnt wasnt arent werent wont wouldnt cant couldnt shouldnt havent hasnt hadnt aint
"""
NEGATORS = frozenset(_ENGLISH.split())
SUBJECTS = frozenset(("nothing", "nobody", "none", "neither", "no"))  # "nothing about this film is interesting"
SUBJECT_SCOPE = 5
ENDS = frozenset(("but", "however", "although", "though", "!", "?"))  # no word after these is negated
KEEPS = "only"  # "not only" negates nothing

_PLAIN, _NEGATOR, _SUBJECT, _END, _KEEPS = range(5)  # kinds of tokens
_NONE = -1  # there is no such word
_ASKED = -2  # it will be added


def negated(words: Iterable[str]) -> Iterator[str]:
    """The words of one text, with a mark before those that a negator negates.

    >>> " ".join(negated("this is not bad at all really".split()))
    'this is not ¬bad ¬at ¬all really'
    """
    left = 0
    for word in words:
        if word in SUBJECTS:
            left = SUBJECT_SCOPE
        elif word in NEGATORS:
            left = SCOPE
        elif word in ENDS or (word == KEEPS and left == SCOPE):
            left = 0
        elif left:
            left -= 1
            yield _marked(word)
            continue
        yield word


def plain(word: str) -> str:
    """The word without the mark of a negated one."""
    return word.removeprefix(NEGATED)


def readable(words: Sequence[str]) -> list[str]:
    """The words of a phrase without marks. If the first word has a mark, it follows "not".

    >>> readable(["¬work", "¬well"])
    ['not', 'work', 'well']
    """
    found = list(map(plain, words))
    return ["not", *found] if words and words[0].startswith(NEGATED) else found


class NegatedIds:
    """The ids of negated words in a table of words.

    A growing table gets each negated word when it first occurs. In a frozen table, those that it does not have are
    unknown.
    """

    def __init__(self, table: WordTable, *, frozen: bool) -> None:
        self._table, self._frozen = table, frozen
        self._kinds, self._negated = np.empty(0, np.uint8), np.empty(0, np.int32)
        groups = ((NEGATORS - SUBJECTS, _NEGATOR), (SUBJECTS, _SUBJECT), (ENDS, _END), ((KEEPS,), _KEEPS))
        found = [(table.add(*pack(sorted(word.encode() for word in words))), kind) for words, kind in groups]
        self._grow()
        for ids, kind in found:
            self._kinds[ids] = kind
        if frozen:
            self._find_all()

    def __call__(self, ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> None:
        """Replace the negated words of rows of ids, in place."""
        if not self._frozen:
            self._grow()
            missing = np.empty(len(self._negated), np.int32)
            count = _find_missing(ids, lengths, self._kinds, self._negated, missing)
            if count:
                self._add(missing[:count])
        _negate(ids, lengths, self._kinds, self._negated)

    def _grow(self) -> None:
        more = len(self._table) - len(self._kinds)
        self._kinds = np.concatenate([self._kinds, np.full(more, _PLAIN, np.uint8)])
        self._negated = np.concatenate([self._negated, np.full(more, _NONE, np.int32)])

    def _find_all(self) -> None:
        mark = NEGATED.encode()
        words = unpack(*self._table.contents())
        marked = [number for number, word in enumerate(words) if word.startswith(mark)]
        bare = self._table.add(*pack([words[number].removeprefix(mark) for number in marked]))  # so that they are seen
        self._grow()
        self._negated[bare] = marked
        too_long = [number for number, word in enumerate(words) if len(word) + len(mark) > MAX_WORD_BYTES]
        self._negated[too_long] = too_long

    def _add(self, missing: npt.NDArray[np.int32]) -> None:
        words = unpack(*pick(*self._table.contents(), missing.astype(np.int64)))
        self._negated[missing] = self._table.add(*pack([_marked(word.decode()).encode() for word in words]))
        self._grow()


def _marked(word: str) -> str:
    """The negated word; a word that leaves no room for the mark stays as it is."""
    return NEGATED + word if len((NEGATED + word).encode()) <= MAX_WORD_BYTES else word


@inlined
def _step(left: Any, kind: Any) -> Any:
    """(whether a token of this kind is negated, how many after it are) if `left` tokens were still to be negated."""
    if kind == _NEGATOR:
        return False, SCOPE
    if kind == _SUBJECT:
        return False, SUBJECT_SCOPE
    if kind == _END or (kind == _KEEPS and left == SCOPE):
        return False, 0
    return left > 0, max(left - 1, 0)


@compiled
def _find_missing(ids: Any, lengths: Any, kinds: Any, negated: Any, missing: Any) -> int:
    """Fill `missing` with the words that occur negated but have no negated word yet; return their number."""
    at, count = 0, 0
    for row in range(lengths.shape[0]):
        left = 0
        for word in ids[at : at + lengths[row]]:
            is_negated, left = _step(left, kinds[word] if 0 <= word < kinds.shape[0] else _PLAIN)
            if is_negated and 0 <= word < kinds.shape[0] and negated[word] == _NONE:
                negated[word] = _ASKED
                missing[count] = word
                count += 1
        at += lengths[row]
    return count


@compiled
def _negate(ids: Any, lengths: Any, kinds: Any, negated: Any) -> None:
    """Replace the negated words of all rows; an unknown word, below 0, stays unknown."""
    at = 0
    for row in range(lengths.shape[0]):
        left = 0
        for place in range(at, min(at + lengths[row], ids.shape[0])):
            word = ids[place]
            is_known = 0 <= word < kinds.shape[0]
            is_negated, left = _step(left, kinds[word] if is_known else _PLAIN)
            if is_negated and is_known:
                ids[place] = negated[word]
        at += lengths[row]
