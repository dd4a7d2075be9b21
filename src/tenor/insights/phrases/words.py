"""What kind of word each id of a vocabulary is: whether a phrase may start or end with it, and its stem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tenor.preparation.tokeniser.negation import NEGATED, plain
from tenor.preparation.tokeniser.stopwords import LISTS
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD

BREAK, INNER, START, END, CONTENT = 0, 1, 2, 3, 4  # where in a phrase a word may stand; CONTENT anywhere

# Negations and "too" start a phrase ("not working", "too small"); particles end one ("fell off"). All other function
# words, among them the stop words of `prepare --stopwords english`, are inside only.
NEGATIONS = frozenset(
    """
not no never nor cannot cant can't dont don't doesnt doesn't didnt didn't wont won't isnt isn't wasnt wasn't arent
aren't werent weren't wouldnt wouldn't couldnt couldn't shouldnt shouldn't hasnt hasn't havent haven't hadnt hadn't
nothing without n't mustnt mustn't neednt needn't mightnt mightn't shant shan't
""".split()  # noqa: SIM905 - forty quoted words would be less readable
)
STARTS = NEGATIONS | {"too"}
ENDS = frozenset(("off", "out", "down", "up", "apart", "away"))
INSIDE = frozenset(LISTS["english"].split()) | frozenset(
    """
would could also get got even one i'm i've i'd i'll im ive that's there's he's us much many really every anyone still
ever since however though although may might
""".split()  # noqa: SIM905 - the same
)
_IRREGULAR = {
    "broke": "break", "broken": "break", "breaking": "break", "fell": "fall", "bought": "buy", "sent": "send",
    "wore": "wear", "worn": "wear", "died": "die", "dies": "die", "dying": "die", "felt": "feel", "lost": "lose",
    "threw": "throw", "thrown": "throw", "tore": "tear", "torn": "tear", "worse": "bad", "worst": "bad",
    "money's": "money", "quality's": "quality",
}  # fmt: skip
_SUFFIXES = ("ments", "ment", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST = 3  # letters of a stem
NOT = "not"  # the stem of all negations


def kinds_of(words: Sequence[str]) -> NDArray[np.uint8]:
    """The kind of each id of a vocabulary; padding, unknown words and marks break phrases."""
    kinds = np.full(len(words) + FIRST_WORD, BREAK, np.uint8)
    kinds[FIRST_WORD:] = [_negated_kind(plain(word)) if word.startswith(NEGATED) else _kind(word) for word in words]
    return kinds


def _negated_kind(word: str) -> int:
    """The kind of a negated word: it never begins a phrase, because the phrase would lack the negator."""
    kind = _kind(word)
    return END if kind == CONTENT else INNER if kind == START else kind


def _kind(word: str) -> int:
    if word in STARTS:
        return START
    if word in ENDS:
        return END
    if word in INSIDE:
        return INNER
    return CONTENT if any(letter.isalpha() for letter in word) else BREAK


def stem(word: str) -> str:
    """A rough stem of a word without a mark: enough to bring stops, stopped and stopping together.

    >>> stem("stopped"), stem("stops"), stem("doesn't")
    ('stop', 'stop', 'not')
    """
    if word in NEGATIONS:
        return NOT
    word = _IRREGULAR.get(word, word)
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST and not word.endswith("ss"):
            word = word[: -len(suffix)] + ("y" if suffix in ("ies", "ied") else "")
            break
    doubled = len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


def stems_of(phrase: Sequence[str]) -> tuple[str, ...]:
    """The stems of the words that carry the meaning of a phrase."""
    kinds = [(word, _kind(word)) for word in phrase]
    chosen = [stem(word) for word, kind in kinds if kind in (CONTENT, END) or word in STARTS]
    return tuple(chosen) or tuple(stem(word) for word in phrase)
