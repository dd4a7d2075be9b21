"""From a rating as written in the file to a class, by a rule that is stated and never guessed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tenor.errors import UsageError

_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?\Z")
BINARY = ("negative", "positive")
BOOLEANS = ("false", "true")  # negative and positive, in a column with no other values
STARS = ("1", "2", "3", "4", "5")
NEUTRAL = -1
NO_RATING = ""  # the canonical rating of a row that has none


def canonical(raw: str) -> str:
    """A rating in its canonical spelling: 5, 5.0 and 5e0 become 5, True becomes true; any other word stays as it is."""
    raw = raw.strip(" \t\r")
    if not _NUMBER.match(raw):
        return raw.lower() if raw.lower() in BOOLEANS else raw
    value = float(raw)
    if not math.isfinite(value):
        return raw
    return str(int(value)) if value == int(value) else repr(value)


def is_number(rating: str) -> bool:
    """Whether a rating is a finite number."""
    return _NUMBER.match(rating) is not None and math.isfinite(float(rating))


def sort_key(rating: str) -> tuple[int, float, str]:
    """The sort key of a rating: numbers by value, then words."""
    return (0, float(rating), "") if is_number(rating) else (1, 0.0, rating)


@dataclass(frozen=True)
class LabelRule:
    """Which ratings belong to which class: `values[i]` are the ratings of class i."""

    classes: tuple[str, ...]
    values: tuple[frozenset[str], ...]

    def as_dict(self) -> dict[str, list[str]]:
        """Each class with its sorted ratings."""
        return {name: sorted(values, key=sort_key) for name, values in zip(self.classes, self.values, strict=True)}

    @classmethod
    def from_dict(cls, values: dict[str, list[str]]) -> LabelRule:
        return cls(tuple(values), tuple(frozenset(ratings) for ratings in values.values()))

    @property
    def is_boolean(self) -> bool:
        """Whether true and false are the only ratings."""
        return all(value in BOOLEANS for values in self.values for value in values)

    @property
    def has_words(self) -> bool:
        """Whether some ratings are words, not numbers."""
        return any(not is_number(value) for values in self.values for value in values)

    def accepts(self, rating: str) -> bool:
        """Whether a canonical value is a rating at all; otherwise its row is rejected.

        Ratings are the listed values, any number, and any word if the rule lists words. A rule for booleans accepts
        only true and false. Values that only Python reads as numbers (NaN, 1e999, full-width digits) are not ratings.
        """
        if any(rating in values for values in self.values):
            return True
        if self.is_boolean:
            return False
        if is_number(rating):
            return True
        return self.has_words and 0 < len(rating) <= 64 and not _is_float(rating)

    def label(self, rating: str) -> int:
        """The class of a canonical rating; NEUTRAL if no class lists it."""
        return next((i for i, values in enumerate(self.values) if rating in values), NEUTRAL)


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def make_rule(labels: str, negative: str, positive: str) -> LabelRule:
    """The rule of the settings `labels`, `negative` and `positive`; UsageError if they contradict each other."""
    if labels == "stars":
        return LabelRule(STARS, tuple(frozenset([star]) for star in STARS))
    low, high = _values("--negative", negative), _values("--positive", positive)
    if low & high:
        raise UsageError(
            f"{', '.join(sorted(low & high))} is both negative and positive",
            remedy="list each rating in only one of --negative and --positive",
        )
    return LabelRule(BINARY, (low, high))


def _values(option: str, text: str) -> frozenset[str]:
    values = frozenset(canonical(part) for part in text.split(",") if part.strip())
    if not values:
        raise UsageError(f"{option} lists no rating", remedy=f"give ratings separated by commas, such as {option} 1,2")
    return values
