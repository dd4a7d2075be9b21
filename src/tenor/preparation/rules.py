"""The label rule a job ends up with."""

from __future__ import annotations

from collections.abc import Iterable

from tenor.corpus.labels import LabelRule, make_rule
from tenor.errors import UsageError
from tenor.preparation.settings import PrepareSettings

FASTTEXT = ("1", "2")  # negative and positive, where a file knows no other label


def settle_rule(rule: LabelRule, settings: PrepareSettings, seen: Iterable[tuple[str, Iterable[str]]]) -> LabelRule:
    """fastText files that know only labels 1 and 2 mean negative and positive, unless told otherwise. `seen` are pairs
    of a file's format and ratings in it."""
    ratings: dict[bool, set[str]] = {True: set(), False: set()}
    for kind, names in seen:
        ratings[kind == "fasttext"].update(names)
    is_default = (settings.negative, settings.positive) == (PrepareSettings.negative, PrepareSettings.positive)
    if settings.labels != "binary" or not is_default or not ratings[True] or not ratings[True] <= set(FASTTEXT):
        return rule
    if ratings[False]:
        raise UsageError(
            "fastText labels 1 and 2 lie beside ratings of other files: 2 would be positive here and negative there",
            remedy="prepare them apart, or say what ratings mean with --negative and --positive",
        )
    return make_rule("binary", *FASTTEXT)
