"""Labelled rows of a raw file, as ids of a run's vocabulary: the rows that prepare would keep, duplicates included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.files.source import Source
from tenor.corpus.labels import NEUTRAL, STARS, LabelRule, canonical, make_rule
from tenor.corpus.pieces import Piece, read_piece, whole
from tenor.errors import UsageError
from tenor.preparation.job.reading import Reading
from tenor.preparation.rules import FASTTEXT, settle_rule, start_rule
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.encode import Encoder


@dataclass(frozen=True)
class LabelledRows:
    """Some rows to score, with their labels."""

    tokens: npt.NDArray[np.int32]  # of all rows, one row after another
    lengths: npt.NDArray[np.int32]  # tokens of each row
    labels: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int64]  # line of each row, counted from 1 within its piece, or its number in a split


def read_labelled(piece: Piece, rule: LabelRule, encoder: Encoder) -> Iterator[LabelledRows]:
    """The rows of a piece that have words and a class, batch by batch."""
    reading = EncodedReading(piece, rule, encoder)
    for batch in read_piece(piece):
        reading.add(batch)
        rows = reading.rows.take()
        table = np.array([rule.label(name) for name in reading.ratings.names] or [NEUTRAL])
        labels = table[rows.codes]
        chosen = labels != NEUTRAL
        tokens = rows.tokens[np.repeat(chosen, rows.lengths)]
        lines = _lines(batch.rows)[rows.places[chosen]]
        yield LabelledRows(tokens, rows.lengths[chosen], labels[chosen].astype(np.uint8), lines)


def _lines(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    column = rows.column(2)
    return np.frombuffer(column.buffers()[1] or b"", np.int64, len(column), 8 * column.offset)


@dataclass(frozen=True)
class RatedRows:
    """Rows with words and a rating."""

    tokens: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    codes: npt.NDArray[np.uint16]  # the code of each row's rating
    places: npt.NDArray[np.int64]  # the number of each row in its batch


_NO_ROWS = RatedRows(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint16), np.empty(0, np.int64))


class EncodedRows:
    """Holds the good rows of one batch that have words, as ids of the run's vocabulary."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder, self._held = encoder, _NO_ROWS

    def add(self, texts: pa.Array, codes: npt.NDArray[np.uint16], good: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        tokens, lengths = self.encoder(texts)
        full = lengths > 0
        kept = good & full
        self._held = RatedRows(tokens[np.repeat(kept, lengths)], lengths[kept], codes[kept], np.flatnonzero(kept))
        return full

    def take(self) -> RatedRows:
        """Remove the rows that are held, and return them."""
        held, self._held = self._held, _NO_ROWS
        return held


class EncodedReading(Reading):
    """Reads a piece as prepare does, but with the vocabulary of a run."""

    rows: EncodedRows

    def __init__(self, piece: Piece, rule: LabelRule, encoder: Encoder) -> None:
        super().__init__(piece, rule)
        self.rows = EncodedRows(encoder)


def choose_rule(sources: Sequence[Source], settings: PrepareSettings, known: LabelRule | None) -> LabelRule:
    """The rule by which the labels of raw files are read.

    Args:
        sources: The files.
        settings: The label options that the caller gave.
        known: The rule of the run's data; None if the caller gave label options, or the run does not store its rule.

    Raises:
        UsageError: The files cannot be read by the rule without more options.
    """
    rule = known or start_rule(settings, sources)
    if all(source.kind.format != "fasttext" for source in sources):
        if known == make_rule("binary", *FASTTEXT):
            raise UsageError(
                "the model was trained on fastText labels 1 and 2, which may mean something else in this file",
                where=sources[0].path,
                remedy="say what the ratings mean with --negative and --positive",
            )
        return rule
    if rule.classes == STARS or (known and {known.label(name) for name in FASTTEXT} == {0, 1}):
        return rule
    seen = (
        (
            source.kind.format,
            [name for raw in batch.rows.column(1).unique().to_pylist() if rule.accepts(name := canonical(raw))],
        )
        for source in sources
        for batch in read_piece(whole(source))
    )
    return settle_rule(rule, settings, seen)
