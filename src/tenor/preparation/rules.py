"""The label rule a job ends up with."""

from __future__ import annotations

from collections.abc import Sequence

from tenor.corpus.labels import LabelRule, make_rule
from tenor.corpus.sources import Source
from tenor.preparation.settings import PrepareSettings


def settle_rule(rule: LabelRule, settings: PrepareSettings, sources: Sequence[Source], ratings: list[str]) -> LabelRule:
    """fastText files that know only labels 1 and 2 mean negative and positive, unless told otherwise."""
    default = (settings.negative, settings.positive) == (PrepareSettings.negative, PrepareSettings.positive)
    if (
        settings.labels == "binary"
        and default
        and all(s.kind.format == "fasttext" for s in sources)
        and set(ratings) <= {"1", "2"}
    ):
        return make_rule("binary", "1", "2")
    return rule
