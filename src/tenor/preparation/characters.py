"""What each character is to the tokeniser, and its lower case: one pinned table for every path.

Python's, Arrow's and C's lower-casing differ (İ, final Σ) and change with their Unicode versions, so the tables are
a file of this package (`unicode.json`, Unicode 14.0) and the same text gives the same tokens everywhere, for ever.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

CODE_POINTS = 0x110000

SPACE = 0  # ends a word, is not kept
WORD = 1  # letters, marks that belong to them, digits
APOSTROPHE = 2  # kept between two word characters: don't
MARK = 3  # ! and ?: a run of one of them is one token
SYMBOL = 4  # emoji: each is a token
IGNORED = 5  # soft hyphens, joiners, variation selectors: as if not there
COMPOSE = 6  # the row must be put into NFC first
ENTITY = 7  # & may begin an HTML entity
TAG = 8  # < may begin an HTML tag


@dataclass(frozen=True)
class Characters:
    """`kinds` for raw text, `plain_kinds` for text already freed of HTML and put into NFC, `lower` for both."""

    kinds: npt.NDArray[np.uint8]  # (CODE_POINTS,)
    plain_kinds: npt.NDArray[np.uint8]  # (CODE_POINTS,)
    lower: npt.NDArray[np.int32]  # (CODE_POINTS,)
    fold: npt.NDArray[np.uint8]  # (256,): the lower case of ASCII word characters, 0 for every other byte


@functools.cache
def characters(clean: str = "words", marks: bool = True) -> Characters:
    """The tables for one way of cleaning: `words`, or `letters` (nothing but letters)."""
    pinned = json.loads(resources.files(__package__).joinpath("unicode.json").read_text("utf-8"))
    kinds = np.zeros(CODE_POINTS, np.uint8)
    groups = {"letters": WORD, "ignored": IGNORED}
    if clean == "words":
        groups |= {"digits": WORD, "symbols": SYMBOL}
        kinds[[ord("'"), 0x2019]] = APOSTROPHE
        kinds[[ord("!"), ord("?")]] = MARK if marks else SPACE
    for name, kind in groups.items():
        for first, last in pinned[name]:
            kinds[first : last + 1] = kind
    plain = kinds.copy()
    for first, last in pinned["compose"]:
        kinds[first : last + 1] = COMPOSE
    kinds[ord("&")], kinds[ord("<")] = ENTITY, TAG
    lower = _lower(pinned["lower"])
    fold = np.zeros(256, np.uint8)
    fold[:128] = np.where(kinds[:128] == WORD, lower[:128], 0)
    return Characters(kinds, plain, lower, fold)


def lower_case(text: str) -> str:
    """A text in the lower case of the pinned table."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return characters().lower[codes].astype("<i4").tobytes().decode("utf-32-le")


def _lower(runs: list[list[int]]) -> npt.NDArray[np.int32]:
    lower = np.arange(CODE_POINTS, dtype=np.int32)
    for first, last, stride, delta in runs:
        lower[first : last + 1 : stride] += delta
    lower[0x2019] = ord("'")  # one apostrophe, so that don’t is don't
    return lower
