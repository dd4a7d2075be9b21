"""Choose the rule by which a job turns ratings into classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from tenor.corpus.files.source import Source
from tenor.corpus.labels import BOOLEANS, NO_RATING, LabelRule, canonical, is_number, make_rule
from tenor.corpus.pieces import read_piece, whole
from tenor.errors import UsageError
from tenor.preparation.settings import PrepareSettings

_MAX_BATCHES = 8  # batches to look at, because the first ones may have no row
FASTTEXT = ("1", "2")  # labels of fastText files that mean negative and positive if a file has no others


def start_rule(settings: PrepareSettings, sources: Sequence[Source]) -> LabelRule:
    """The rule before any file is read as a whole.

    If the settings do not say which ratings mean what, and the first rows of the first file are labelled true and
    false, then false is negative and true is positive. Files and rows that are kept without a rating do not count.
    """
    rule = make_rule(settings.labels, settings.negative, settings.positive)
    first = next((source for source in sources if source.columns is None or source.columns.rating is not None), None)
    if settings.labels != "binary" or not is_default(settings) or first is None or first.kind.format == "fasttext":
        return rule
    for batch in itertools.islice(read_piece(whole(first)), _MAX_BATCHES):
        ratings = {canonical(raw) for raw in batch.rows.column(1).unique().to_pylist()}
        if first.unlabelled:
            ratings.discard(NO_RATING)
        if ratings:
            return make_rule("binary", *BOOLEANS) if ratings & set(BOOLEANS) and not _any_number(ratings) else rule
    return rule


def _any_number(ratings: Iterable[str]) -> bool:
    return any(is_number(rating) for rating in ratings)


def is_default(settings: PrepareSettings) -> bool:
    """Whether the settings leave it open which ratings mean what."""
    return (settings.negative, settings.positive) == (PrepareSettings.negative, PrepareSettings.positive)


def settle_rule(rule: LabelRule, settings: PrepareSettings, seen: Iterable[tuple[str, Iterable[str]]]) -> LabelRule:
    """The rule once all ratings are known.

    Labels 1 and 2 of fastText files mean negative and positive if these files have no other labels and the settings do
    not say otherwise.

    Args:
        rule: The rule of `start_rule`.
        settings: The settings of the job.
        seen: Pairs of a file's format and ratings in the file.

    Raises:
        UsageError: There are such fastText files and files with other ratings.
    """
    ratings: dict[bool, set[str]] = {True: set(), False: set()}
    for kind, names in seen:
        ratings[kind == "fasttext"].update(names)
    if (
        settings.labels != "binary"
        or not is_default(settings)
        or not ratings[True]
        or not ratings[True] <= set(FASTTEXT)
    ):
        return rule
    if ratings[False]:
        raise UsageError(
            "fastText labels 1 and 2 are mixed with ratings of other files: 2 would be positive in one file and "
            "negative in the other",
            remedy="prepare them separately, or say what the ratings mean with --negative and --positive",
        )
    return make_rule("binary", *FASTTEXT)
