"""A row store of texts that no model has scored: probabilities, labels and dates are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from helpers.corpora import Review, make_reviews

from tenor.corpus.files.source import Kind, Source
from tenor.corpus.pieces import Piece
from tenor.insights.row_store import RowStore
from tenor.insights.rows import SCHEMA, DistinctWords, RowsResult, lists_of
from tenor.insights.times import NO_DAY
from tenor.preparation.job.reading import PieceCounts
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.tokenise import TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import Vocabulary

SETTINGS = TokeniserSettings()


def vocabulary_of(texts: Sequence[str]) -> Vocabulary:
    counts: dict[str, int] = {}
    for text in texts:
        for word in text.split():
            counts[word] = counts.get(word, 0) + 1
    return Vocabulary(sorted(counts, key=lambda word: (-counts[word], word)))


def store_texts(
    folder: Path,
    texts: Sequence[str],
    *,
    negative: Sequence[float] | None = None,
    labels: Sequence[int] | None = None,
    groups: Sequence[str | None] | None = None,
    days: Sequence[int] | None = None,
    batch: int = 64,
) -> tuple[RowStore, Vocabulary]:
    """Write texts of plain words as a row file, and open it. The caller closes the store."""
    count = len(texts)
    vocabulary = vocabulary_of(texts)
    array = pa.array(texts, pa.large_string())
    tokens = Encoder(vocabulary, SETTINGS.as_dict(), 10_000)(array)
    low = np.asarray(negative if negative is not None else np.full(count, 0.5), np.float32)
    columns = [
        lists_of(*tokens),
        lists_of(*DistinctWords(SETTINGS)(array)),
        array,
        pa.array(groups if groups is not None else [None] * count, pa.large_string()),
        lists_of(np.stack([low, 1 - low], axis=1).ravel(), np.full(count, 2)),
        pa.array(np.asarray(labels if labels is not None else np.full(count, -1), np.int8)),
        pa.array(np.arange(1, count + 1)),
        pa.array(np.asarray(days if days is not None else np.full(count, NO_DAY), np.int32)),
    ]
    path = folder / "rows.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as out:
        whole = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        for start in range(0, count, batch):
            out.write_batch(whole.slice(start, batch))
    piece = Piece(Source("reviews.txt", 1, Kind("csv", "")), 0, None)
    counts = PieceCounts(count, count, 1, {}, 0, ())
    return RowStore([path], [piece], [RowsResult(count, counts, None, ())]), vocabulary


def plain_reviews(rows: int, seed: int) -> list[Review]:
    """Reviews without the number that makes each one unique: numbers would tell old reviews from new ones."""
    return [Review(review.text.rpartition(" ")[0], review.rating) for review in make_reviews(rows, seed)]
