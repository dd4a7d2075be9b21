"""The kind and the lower case of each character, from one pinned table.

Lower-casing differs between Python, Arrow and C (İ, final Σ) and changes with the Unicode version. The tables are
therefore a file of this package (`unicode.json`, Unicode 14.0), so that the same text always gives the same tokens.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

CODE_POINTS = 0x110000

SPACE = 0  # ends a word and is not kept
WORD = 1  # letters, marks that belong to them, digits
APOSTROPHE = 2  # kept between two word characters: don't
MARK = 3  # ! and ?: a run of one of them is one token
SYMBOL = 4  # emoji: each is a token
IGNORED = 5  # skipped inside words too: soft hyphens, joiners, variation selectors
COMPOSE = 6  # the row must be normalised to NFC first
ENTITY = 7  # &, which may begin an HTML entity
TAG = 8  # <, which may begin an HTML tag


@dataclass(frozen=True)
class CharacterTables:
    """The tables for one way of cleaning texts."""

    kinds: npt.NDArray[np.uint8]  # (CODE_POINTS,): for raw text
    plain_kinds: npt.NDArray[np.uint8]  # (CODE_POINTS,): for text without HTML, in NFC
    lower: npt.NDArray[np.int32]  # (CODE_POINTS,): lower case, for both
    fold: npt.NDArray[np.uint8]  # (256,): lower case of ASCII word characters, 0 for every other byte


@functools.cache
def characters(clean: str = "words", marks: bool = True) -> CharacterTables:
    """The tables for one way of cleaning.

    Args:
        clean: `words`, or `letters` to keep nothing but letters.
        marks: Keep ! and ? as tokens.
    """
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
    return CharacterTables(kinds, plain, lower, fold)


def lower_case(text: str) -> str:
    """The text in lower case, by the pinned table."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return characters().lower[codes].astype("<i4").tobytes().decode("utf-32-le")


def _lower(runs: list[list[int]]) -> npt.NDArray[np.int32]:
    lower = np.arange(CODE_POINTS, dtype=np.int32)
    for first, last, stride, delta in runs:
        lower[first : last + 1 : stride] += delta
    lower[0x2019] = ord("'")  # both apostrophes are the same, so that don’t is don't
    return lower
