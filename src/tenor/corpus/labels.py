"""From a rating as it was written to a class, by a rule that is stated and never guessed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tenor.errors import UsageError

_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?\Z")
BINARY = ("negative", "positive")
STARS = ("1", "2", "3", "4", "5")
NEUTRAL = -1


def canonical(raw: str) -> str:
    """A rating in one spelling: 5, 5.0 and 5e0 are the same; a word stays a word."""
    raw = raw.strip(" \t\r")
    if not _NUMBER.match(raw):
        return raw
    value = float(raw)
    if not math.isfinite(value):
        return raw
    return str(int(value)) if value == int(value) else repr(value)


def is_number(rating: str) -> bool:
    return _NUMBER.match(rating) is not None and math.isfinite(float(rating))


def rank(rating: str) -> tuple[int, float, str]:
    """The order of ratings: numbers by value, then words."""
    return (0, float(rating), "") if is_number(rating) else (1, 0.0, rating)


@dataclass(frozen=True)
class LabelRule:
    """Which ratings stand for which class; `values[i]` are those of class i."""

    classes: tuple[str, ...]
    values: tuple[frozenset[str], ...]

    def as_dict(self) -> dict[str, list[str]]:
        """Class → its ratings, sorted."""
        return {name: sorted(values, key=rank) for name, values in zip(self.classes, self.values, strict=True)}

    @classmethod
    def from_dict(cls, values: dict[str, list[str]]) -> LabelRule:
        return cls(tuple(values), tuple(frozenset(ratings) for ratings in values.values()))

    @property
    def has_words(self) -> bool:
        return any(not is_number(value) for values in self.values for value in values)

    def accepts(self, rating: str) -> bool:
        """Whether a canonical rating is one at all: a listed value, a number, or a word where words are listed. What
        Python alone takes for a number (NaN, 1e999, full-width digits) is neither."""
        if any(rating in values for values in self.values) or is_number(rating):
            return True
        return self.has_words and 0 < len(rating) <= 64 and not _is_float(rating)

    def label(self, rating: str) -> int:
        """The class of a canonical rating; NEUTRAL for one that is in no list."""
        return next((i for i, values in enumerate(self.values) if rating in values), NEUTRAL)


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def make_rule(labels: str, negative: str, positive: str) -> LabelRule:
    """The rule that the settings ask for."""
    if labels == "stars":
        return LabelRule(STARS, tuple(frozenset([star]) for star in STARS))
    low, high = _values("--negative", negative), _values("--positive", positive)
    if low & high:
        raise UsageError(
            f"{', '.join(sorted(low & high))} is both negative and positive",
            remedy="give --negative and --positive apart",
        )
    return LabelRule(BINARY, (low, high))


def _values(option: str, text: str) -> frozenset[str]:
    values = frozenset(canonical(part) for part in text.split(",") if part.strip())
    if not values:
        raise UsageError(f"{option} lists no rating", remedy=f"give values parted by commas, such as {option} 1,2")
    return values
