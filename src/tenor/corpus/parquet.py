"""Parquet: read by row groups, so that one file can use all workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tenor.corpus.batch import Batch, Reject, make_batch
from tenor.corpus.columns import Columns
from tenor.errors import CorpusError

_ROWS = 4096


def inspect(stream: BinaryIO, where: str) -> tuple[list[str], list[int]]:
    """(column names, bytes of each row group)."""
    file = _open(stream, where)
    groups = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
    return file.schema_arrow.names, groups


def read(stream: BinaryIO, columns: Columns, where: str, start: int = 0, end: int | None = None) -> Iterator[Batch]:
    """The rows of the row groups [start, end); a row's line is its number among them."""
    file = _open(stream, where)
    groups = list(range(start, file.num_row_groups if end is None else end))
    wanted = [name for name in (columns.text, columns.rating, columns.title) if name]
    line = 1
    try:
        for rows in file.iter_batches(_ROWS, row_groups=groups, columns=list(dict.fromkeys(wanted))):
            yield _batch(rows, columns, line, where)
            line += rows.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _damaged(where, error) from error


def _open(stream: BinaryIO, where: str) -> Any:
    try:
        return pq.ParquetFile(stream)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(where, error) from error


def _damaged(where: str, error: Exception) -> CorpusError:
    told = " ".join(str(error).split())[:200]
    return CorpusError(f"damaged Parquet data: {told}", where=where, remedy="fetch the file again")


def _batch(rows: pa.RecordBatch, columns: Columns, first: int, where: str) -> Batch:
    text = _strings(rows.column(columns.text), columns.text, where)
    rating = (
        _strings(rows.column(columns.rating), columns.rating, where)
        if columns.rating
        else pa.array([""] * rows.num_rows, pa.large_string())
    )
    if columns.title:
        title = _strings(rows.column(columns.title), columns.title, where)
        text = pc.if_else(
            pc.is_valid(title), pc.binary_join_element_wise(title, text, pa.scalar(" ", pa.large_string())), text
        )
    lines = np.arange(first, first + rows.num_rows)
    no_text, no_rating = (np.asarray(pc.is_null(column)) for column in (text, rating))
    rejects = [Reject(int(line), "missing text") for line in lines[no_text]]
    rejects += [Reject(int(line), "missing rating") for line in lines[no_rating & ~no_text]]
    good = pa.array(~(no_text | no_rating))
    # A copy without nulls, so that its buffers hold these rows and nothing else.
    text, rating = (pa.concat_arrays([column.filter(good)]) for column in (text, rating))
    return make_batch(text, rating, lines[~(no_text | no_rating)], rejects, rows.num_rows)


def _strings(column: pa.Array, name: str, where: str) -> pa.Array:
    if pa.types.is_boolean(column.type) or pa.types.is_nested(column.type):
        raise CorpusError(
            f"column {name!r} holds {column.type}, not text or numbers", where=where, remedy="choose another column"
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type):
        column = column.view(pa.string())  # not yet known to be UTF-8: make_batch looks
    if pa.types.is_large_binary(column.type):
        column = column.view(pa.large_string())
    return column.cast(pa.large_string())
