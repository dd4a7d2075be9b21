"""Open raw files for insights and drift: sources, what their ratings mean, and further columns read beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tenor.corpus.columns import Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.labels import LabelRule, make_rule
from tenor.corpus.pieces import Piece, read_piece
from tenor.corpus.sources import find_sources, inspect
from tenor.errors import CorpusError, UsageError
from tenor.evaluation.labelled import choose_rule
from tenor.insights.scoring import RunScorer
from tenor.insights.settings import RatedSettings
from tenor.prediction.titles import open_with_title
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress

_LABELS = ("labels", "negative", "positive")


@dataclass(frozen=True)
class ReviewFiles:
    """The files to read, and what their ratings mean."""

    sources: list[Source]
    rule: LabelRule
    is_rated: bool  # whether any file has ratings


def open_inputs(files: Sequence[str], scorer: RunScorer, settings: RatedSettings, progress: Progress) -> ReviewFiles:
    """Open files whose rows may have a rating.

    Raises:
        CorpusError: A file cannot be read.
        UsageError: The labels cannot mean the classes of the run.
    """

    def look(title: str | None) -> list[Source]:
        return find_sources(list(files), replace(settings.wanted, title=title, unlabelled=True))

    sources = open_with_title(look, scorer.config, settings.title_column, files[0], progress)
    is_rated = any(source.columns is None or source.columns.rating for source in sources)
    return ReviewFiles(sources, _rule(sources, scorer, settings, progress), is_rated)


def _rule(sources: list[Source], scorer: RunScorer, settings: RatedSettings, progress: Progress) -> LabelRule:
    given = {name: value for name in _LABELS if (value := getattr(settings, name)) is not None}
    reading = PrepareSettings(**given)
    known = None if given else scorer.config.get("labels")
    try:
        rule = choose_rule(sources, reading, known and LabelRule.from_dict(known))
    except UsageError as error:
        if given or len(scorer.classes) != 2:
            raise
        rule = make_rule("binary", PrepareSettings.negative, PrepareSettings.positive)
        values = rule.as_dict()
        meaning = " and ".join(f"{', '.join(values[name])} as {name}" for name in rule.classes)
        progress.warn(f"{error.what}; ratings are read with {meaning}")
    if rule.classes != scorer.classes:
        what = f"the labels make the classes {', '.join(rule.classes)}, but the run has {', '.join(scorer.classes)}"
        raise UsageError(what, remedy="give the label options that the run's data was prepared with")
    return rule


def beside(sources: Sequence[Source], column: str | None, option: str, wanted: Wanted) -> list[Source | None]:
    """The same files, read with another column in place of the rating; None for each if `column` is None.

    Args:
        sources: The files.
        column: The column to read.
        option: The option that names it, for messages.
        wanted: How the files are read otherwise.

    Raises:
        CorpusError: The files do not have the column.
    """
    if column is None:
        return [None] * len(sources)
    found: list[Source | None] = []
    doubts = []
    for source in sources:
        if source.columns is None:
            raise CorpusError(f"has no columns, so none called {column!r}", where=source.shown, remedy=f"omit {option}")
        other = replace(wanted, text=source.columns.text, rating=column, title=None, unlabelled=False)
        try:
            side, doubt = inspect(source.path, other, source.kind.member)
        except CorpusError as error:
            raise _named(error, option) from None
        found.append(replace(side, unlabelled=True))
        doubts += [doubt] if doubt else []
    if doubts and len(doubts) == len(sources):
        raise _named(doubts[0], option)
    return found


def _named(error: CorpusError, option: str) -> CorpusError:
    remedy = (error.remedy or "").replace("--label-column", option)
    return CorpusError(error.what, where=error.where, remedy=remedy)


class Column:
    """The values of another column of a piece, found by line."""

    def __init__(self, source: Source | None, piece: Piece) -> None:
        self._batches = iter(()) if source is None else _values(Piece(source, piece.start, piece.end))
        self._lines, self._values = np.empty(0, np.int64), pa.array([], pa.large_string())

    def at(self, lines: NDArray[np.int64]) -> pa.Array:
        """The value in each of these lines, which rise from call to call; null for lines without one."""
        while len(lines) and (not len(self._lines) or self._lines[-1] < lines[-1]):
            more = next(self._batches, None)
            if more is None:
                break
            self._lines = np.concatenate([self._lines, more[0]])
            self._values = pa.concat_arrays([self._values, more[1]])
        place = np.searchsorted(self._lines, lines)
        inside = np.minimum(place, max(len(self._lines) - 1, 0))
        missing = (place >= len(self._lines)) | (
            self._lines[inside] != lines if len(self._lines) else np.ones(len(lines), bool)
        )
        values = self._values.take(pa.array(np.where(missing, 0, inside), mask=missing))
        keep = int(np.searchsorted(self._lines, lines[-1], "right")) if len(lines) else 0
        self._lines, self._values = self._lines[keep:], self._values.slice(keep)
        return values


def _values(piece: Piece) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    for batch in read_piece(piece):
        if batch.rows.num_rows:
            yield batch.rows.column(2).to_numpy(), batch.rows.column(1)
