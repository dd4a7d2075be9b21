"""Account for every row of a raw file, and list its labels, before any row is scored.

The file is read a second time for scoring. Reading is far cheaper than scoring, and a file whose labels do not fit is
refused at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tenor.corpus.labels import NEUTRAL, LabelRule, canonical
from tenor.corpus.pieces import Piece, read_piece
from tenor.evaluation.labelled import EncodedReading
from tenor.preparation.job.accounting import (
    RowCounts,
    account,
    check_rejects,
    check_rows,
    count_read,
    count_rejected,
)
from tenor.preparation.job.reading import BAD_RATING, PieceCounts, Ratings
from tenor.preparation.tokeniser.encode import Encoder

SHOWN = 10  # labels that a message lists
_MAX_SHOWN_LENGTH = 40


@dataclass(frozen=True)
class PieceSurvey:
    """The rows and labels of one piece."""

    counts: PieceCounts
    labels: dict[str, int]  # rows with words, by label
    invalid: tuple[str, ...]  # some of the labels that the rule does not accept
    first_reject: int | None  # line of the first rejected row


@dataclass(frozen=True)
class Survey:
    """The rows and labels of a file."""

    rows: RowCounts  # `kept` is the number of rows to score
    labels: dict[str, int]
    invalid: tuple[str, ...]

    @property
    def num_invalid(self) -> int:
        """Rows with a label that the rule does not accept."""
        return self.rows.rejected.get(BAD_RATING, 0)


def survey_piece(piece: Piece, rule: LabelRule, encoder: Encoder) -> PieceSurvey:
    """Account for the rows of a piece, as prepare does."""
    reading = _SurveyReading(piece, rule, encoder)
    counts: Counter[int] = Counter()
    for batch in read_piece(piece):
        reading.add(batch)
        counts.update(reading.rows.take().codes.tolist())
    names = list(reading.ratings.names)
    labels = {names[code]: rows for code, rows in counts.items()}
    return PieceSurvey(reading.counts(), labels, tuple(reading.ratings.invalid), reading.rejects.first_line())


def join_surveys(pieces: Sequence[Piece], surveys: Sequence[PieceSurvey], rule: LabelRule) -> Survey:
    """The survey of a file from those of its pieces.

    Raises:
        CorpusError: The file has no rows.
    """
    found = [survey.counts for survey in surveys]
    check_rows(found, pieces)
    labels: Counter[str] = Counter()
    for survey in surveys:
        labels.update(survey.labels)
    neutral = sum(rows for name, rows in labels.items() if rule.label(name) == NEUTRAL)
    rows = account(found, duplicates=0, neutral=neutral, kept=labels.total() - neutral)
    invalid = dict.fromkeys(name for survey in surveys for name in survey.invalid)
    return Survey(rows, dict(labels), tuple(invalid)[:SHOWN])


def check_survey(pieces: Sequence[Piece], surveys: Sequence[PieceSurvey], max_rejects: float) -> None:
    """Fail if more rows are rejected than the limit allows, as prepare does."""
    found = [survey.counts for survey in surveys]
    check_rejects(count_read(found), count_rejected(found), max_rejects, lambda: _first_reject(pieces, surveys))


def _first_reject(pieces: Sequence[Piece], surveys: Sequence[PieceSurvey]) -> tuple[str, int]:
    """File and line of the first rejected row."""
    lines_before: Counter[str] = Counter()  # lines of each file's earlier pieces
    for piece, survey in zip(pieces, surveys, strict=True):
        file = piece.source.shown
        if survey.first_reject is not None:
            return file, lines_before[file] + survey.first_reject
        lines_before[file] += survey.counts.lines
    raise AssertionError("no row is rejected")


class _SurveyRatings(Ratings):
    """Ratings that keep a few of the labels that are not accepted."""

    def __init__(self, rule: LabelRule, where: str) -> None:
        super().__init__(rule, where)
        self.invalid: list[str] = []

    def _code(self, raw: str) -> int:
        code = super()._code(raw)
        if code < 0 and len(self.invalid) < SHOWN:
            name = canonical(raw)[:_MAX_SHOWN_LENGTH]
            if name not in self.invalid:
                self.invalid.append(name)
        return code


class _SurveyReading(EncodedReading):
    ratings: _SurveyRatings

    def __init__(self, piece: Piece, rule: LabelRule, encoder: Encoder) -> None:
        super().__init__(piece, rule, encoder)
        self.ratings = _SurveyRatings(rule, piece.source.shown)
