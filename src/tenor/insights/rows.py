"""The map step: each worker reads a piece once, scores its rows, and writes everything else that insights need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tenor.compiled import compiled
from tenor.corpus.files.source import Source
from tenor.corpus.labels import NEUTRAL, LabelRule
from tenor.corpus.pieces import Piece, read_piece
from tenor.engines.stage import JobStage
from tenor.evaluation.labelled import EncodedReading
from tenor.insights.reading import Column
from tenor.insights.scoring import RunScorer
from tenor.insights.times import NO_DAY, days_of
from tenor.prediction.worker_model import ModelRef
from tenor.preparation.job.reading import PieceCounts
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.preparation.tokeniser.words import word_hashes
from tenor.store.atomic import replacing

MOST_WORDS = 1 << 18  # in the table of spellings; a larger table is emptied
SCORED_ROWS = 1024  # rows of a batch of a row file
SCHEMA = pa.schema(
    [
        ("tokens", pa.large_list(pa.int32())),  # ids of the run's vocabulary
        ("words", pa.large_list(pa.uint32())),  # hashes of the different words, in rising order
        ("text", pa.large_string()),
        ("group", pa.large_string()),
        ("chances", pa.large_list(pa.float32())),  # of each class
        ("label", pa.int8()),  # NEUTRAL: none
        ("line", pa.int64()),  # within the piece
        ("day", pa.int32()),
    ]
)


@dataclass(frozen=True)
class RowsTask:
    """Read and score one piece."""

    model: ModelRef
    piece: Piece
    rule: LabelRule
    by: Source | None
    time: Source | None
    out: str  # the row file to write
    threads: int
    workers: int


@dataclass(frozen=True)
class RowsResult:
    rows: int
    counts: PieceCounts
    first_reject: int | None
    bad_times: tuple[str, ...]  # some values that are not dates


@JobStage
def score_piece(task: RowsTask) -> RowsResult:
    """Read and score one piece into a row file."""
    scorer = RunScorer(task.model, task.threads, task.workers)
    reading = EncodedReading(task.piece, task.rule, scorer.encoder)
    words = DistinctWords(TokeniserSettings.from_dict(scorer.config["tokeniser"]))
    by, time = Column(task.by, task.piece), Column(task.time, task.piece)
    rows = 0
    bad: dict[str, None] = {}
    with (
        replacing(Path(task.out)) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, SCHEMA) as out,
    ):
        for batch in read_piece(task.piece):
            reading.add(batch)
            found = reading.rows.take()
            table = np.array([task.rule.label(name) for name in reading.ratings.names] or [NEUTRAL])
            lines = batch.rows.column(2).to_numpy()[found.places]
            times = time.at(lines)
            days = _days(times)
            if task.time and len(bad) < 3:
                bad.update(dict.fromkeys(v for v in times.filter(pa.array(days == NO_DAY)).to_pylist()[:3] if v))
            texts = batch.rows.column(0).take(pa.array(found.places))
            columns = [
                lists_of(found.tokens, found.lengths),
                lists_of(*words(texts)),
                texts,
                by.at(lines),
                _rows_of(scorer.probabilities(found.tokens, found.lengths)),
                pa.array(table[found.codes].astype(np.int8)),
                pa.array(lines),
                pa.array(days),
            ]
            whole = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
            for start in range(0, len(lines), SCORED_ROWS):
                out.write_batch(whole.slice(start, SCORED_ROWS))
            rows += len(lines)
    return RowsResult(rows, reading.counts(), reading.rejects.first_line(), tuple(bad)[:3])


def _days(times: pa.Array) -> NDArray[np.int32]:
    encoded = times.dictionary_encode()
    table = np.append(days_of(encoded.dictionary.to_pylist()), np.int32(NO_DAY))
    days: NDArray[np.int32] = table[encoded.indices.fill_null(len(table) - 1).to_numpy()]
    return days


def lists_of(values: NDArray[Any], lengths: NDArray[Any]) -> pa.Array:
    """Values of all rows, one row after another, as an Arrow array of lists."""
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))


def _rows_of(matrix: NDArray[np.float32]) -> pa.Array:
    return lists_of(matrix.ravel(), np.full(len(matrix), matrix.shape[1]))


class DistinctWords:
    """Texts to the hashes of their different words, also of words outside the vocabulary."""

    def __init__(self, settings: TokeniserSettings) -> None:
        self._settings = settings
        self._start()

    def _start(self) -> None:
        self._tokeniser, self._hashes = Tokeniser.counting(self._settings), np.empty(0, np.uint32)

    def __call__(self, texts: pa.Array) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """(hashes of all rows, one row after another and rising within a row; number of each row)."""
        if len(self._tokeniser.table) > MOST_WORDS:
            self._start()
        tokens = self._tokeniser(texts)
        data, starts = self._tokeniser.table.contents()
        more = word_hashes(data, starts[len(self._hashes) :]) >> np.uint64(32)
        self._hashes = np.concatenate([self._hashes, more.astype(np.uint32)])
        hashes, counts = self._hashes[tokens.ids], np.empty(len(tokens.lengths), np.int64)
        used = _distinct(hashes, np.cumsum(tokens.lengths, dtype=np.int64), counts)
        return hashes[:used], counts


@compiled
def _distinct(hashes: Any, ends: Any, counts: Any) -> int:
    """Sort the hashes of each row and keep each one once, in place; return the number of those that are left."""
    start, to = 0, 0
    for row in range(len(ends)):
        part = np.sort(hashes[start : ends[row]])
        kept = 0
        for i in range(len(part)):
            if i == 0 or part[i] != part[i - 1]:
                hashes[to + kept] = part[i]
                kept += 1
        counts[row] = kept
        to, start = to + kept, ends[row]
    return to


def concatenated(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    """All parts one after another; an empty array if there are none."""
    return np.concatenate([np.empty(0, kind), *parts]).astype(kind, copy=False)
