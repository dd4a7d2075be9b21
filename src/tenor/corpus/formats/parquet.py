"""Parquet: read by row groups, so that one file can use all workers.

A few hundred bytes of Parquet can decode to gigabytes of text. The sizes that the footer declares are checked before
anything is read. Strings stay dictionaries until their decoded size is known; then a few megabytes are decoded at a
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tenor.corpus.batch import Reject, RowBatch, make_batch
from tenor.corpus.columns import ColumnChooser, Columns
from tenor.corpus.files.limits import largest_unpacked, too_large
from tenor.corpus.files.source import Layout, Source
from tenor.corpus.files.streams import open_content
from tenor.corpus.formats.base import Format, Range, Record
from tenor.corpus.labels import NO_RATING
from tenor.corpus.scanning.blocks import MAX_LINE
from tenor.errors import CorpusError

_ROWS = 4096
_SLICE = 8 << 20  # decoded bytes of a batch, unless a single row has more
_CHUNK = 4 << 30  # maximum bytes of one column in one row group; writers stay below a quarter of it
_DELTA = 64 << 20  # decoded bytes of a batch of delta-encoded strings
_REWRITE = "if the file is genuine, save it again without compression, or as CSV"
_ERRORS = (pa.ArrowException, OSError, ValueError, LookupError)


class Parquet(Format):
    """Ranges count row groups instead of bytes, and the line of a row is its number."""

    name = "parquet"
    title = "Parquet"
    suffixes = (".parquet", ".pq")
    magic = b"PAR1"
    is_binary = True

    def inspect(self, source: Source, start: bytes, choose: ColumnChooser) -> Layout:
        with open_content(source) as stream:
            names, groups = inspect(stream, source.shown)
        return Layout(choose(names), details={"groups": groups})

    def cut(self, source: Source, size: int) -> list[Range]:
        groups = source.details["groups"]
        bounds, held = [0], 0
        for number, group in enumerate(groups):
            held += group
            if held >= size:
                bounds.append(number + 1)
                held = 0
        if bounds[-1] != len(groups):
            bounds.append(len(groups))
        return list(itertools.pairwise(bounds))

    def why_not_cut(self, source: Source) -> str:
        return "a Parquet file is cut at its row groups"

    def size(self, source: Source, start: int, end: int | None) -> int:
        return sum(source.details["groups"][start:end])

    def read(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[RowBatch]:
        assert source.columns is not None
        return read(stream, source.columns, source.shown, start, end, unlabelled=source.unlabelled)

    def read_records(
        self, stream: BinaryIO, source: Source, start: int, end: int | None
    ) -> Iterator[tuple[RowBatch, list[Record]]]:
        with open_content(source) as second:
            records = _Records(second, source.shown, start, end)
            for batch in self.read(stream, source, start, end):
                yield batch, records.take(batch.rows.column(2).to_pylist(), batch.lines)

    def lines_before(self, stream: BinaryIO, source: Source, start: int) -> int:
        return num_rows(stream, source.shown, start)


PARQUET = Parquet()


class _Records:
    """All columns of the rows of some row groups, a batch at a time."""

    def __init__(self, stream: BinaryIO, where: str, start: int, end: int | None) -> None:
        self._rows = _rows(stream, where, start, end)
        self._held: list[Record] = []
        self._first = 1  # the row that `_held` begins with

    def take(self, rows: list[int], num_rows: int) -> list[Record]:
        """The records of these rows, which are among the next `num_rows`."""
        while len(self._held) < num_rows:
            self._held += next(self._rows)
        found = [self._held[row - self._first] for row in rows]
        self._held, self._first = self._held[num_rows:], self._first + num_rows
        return found


def _rows(stream: BinaryIO, where: str, start: int, end: int | None) -> Iterator[list[Record]]:
    """All columns of the rows of the row groups [start, end), a few megabytes at a time."""
    file = _open(stream, where)
    groups = range(start, file.num_row_groups if end is None else end)
    try:
        chunks = _chunks(file.metadata, groups)
        packed, decoded = _check_sizes(file.metadata, groups, chunks, where), 0
        rows = _rows_at_a_time(chunks)
        if not _is_delta(chunks):
            file = _open(stream, where, {chunk.path_in_schema for chunk in chunks})
        for batch in file.iter_batches(rows, row_groups=list(groups)):
            sizes = sum(map(_nested_lengths, batch.columns), start=np.zeros(batch.num_rows, np.int64))
            decoded += int(sizes.sum())
            if decoded > largest_unpacked(packed):
                raise too_large(where, _REWRITE)
            for first, last in _slices(sizes):
                yield _in_microseconds(batch.slice(first, last - first)).to_pylist()
    except _ERRORS as error:
        raise _damaged(where, error) from error


def inspect(stream: BinaryIO, where: str) -> tuple[list[str], list[int]]:
    """(column names, bytes of each row group)."""
    file = _open(stream, where)
    try:
        groups = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
        names = file.schema_arrow.names
    except _ERRORS as error:
        raise _damaged(where, error) from error
    if any(group < 0 for group in groups):
        raise _damaged(where, "a row group declares a negative size")
    return names, groups


def num_rows(stream: BinaryIO, where: str, groups: int) -> int:
    """The number of rows in the first `groups` row groups."""
    metadata = _open(stream, where).metadata
    return sum(metadata.row_group(group).num_rows for group in range(groups))


def read(
    stream: BinaryIO, columns: Columns, where: str, start: int = 0, end: int | None = None, *, unlabelled: bool = False
) -> Iterator[RowBatch]:
    """The rows of the row groups [start, end); the line of a row is its number among them, from 1.

    `unlabelled` keeps rows whose rating is null.
    """
    try:
        yield from _read(stream, columns, where, start, end, unlabelled)
    except _ERRORS as error:
        raise _damaged(where, error) from error


def _read(
    stream: BinaryIO, columns: Columns, where: str, start: int, end: int | None, unlabelled: bool
) -> Iterator[RowBatch]:
    file = _open(stream, where)
    groups = range(start, file.num_row_groups if end is None else end)
    wanted = list(dict.fromkeys(name for name in (columns.text, columns.rating, columns.title) if name))
    dated = columns.rating if unlabelled else None  # without a rule for labels, the column may hold anything
    kinds = {name: _check_kind(file.schema_arrow.field(name).type, name, where, name == dated) for name in wanted}
    chunks = _chunks(file.metadata, groups, wanted)
    packed = _check_sizes(file.metadata, groups, chunks, where)
    rows = _rows_at_a_time(chunks)
    if not _is_delta(chunks):  # Arrow cannot read delta-encoded strings as dictionaries
        file = _open(stream, where, [name for name in wanted if _is_bytes(kinds[name])])
    line, unpacked = 1, 0
    for batch in file.iter_batches(rows, row_groups=list(groups), columns=wanted):
        sizes = _sizes(batch)
        unpacked += int(sizes.sum())
        if unpacked > largest_unpacked(packed):
            raise too_large(where, _REWRITE)
        for first, last in _slices(sizes):
            yield _batch(batch.slice(first, last - first), columns, line + first, unlabelled)
        line += batch.num_rows


def _is_delta(chunks: list[Any]) -> bool:
    return any("DELTA" in encoding for chunk in chunks for encoding in chunk.encodings)


def _rows_at_a_time(chunks: list[Any]) -> int:
    """Rows that are decoded together: fewer if their size is not known before."""
    largest = max([1, *(chunk.total_uncompressed_size for chunk in chunks)])
    return max(1, min(_ROWS, _DELTA // largest)) if _is_delta(chunks) else _ROWS


def _open(stream: BinaryIO, where: str, dictionaries: Collection[str] = ()) -> Any:
    try:
        return pq.ParquetFile(stream, read_dictionary=list(dictionaries))
    except _ERRORS as error:
        raise _damaged(where, error) from error


def _damaged(where: str, error: object) -> CorpusError:
    reason = " ".join(str(error).split())[:200]
    return CorpusError(f"damaged Parquet data: {reason}", where=where, remedy="fetch the file again")


def _chunks(metadata: Any, groups: range, wanted: Collection[str] | None = None) -> list[Any]:
    """The footer's entries for each wanted column, or for all of them, in each row group."""
    places = [i for i in range(metadata.num_columns) if wanted is None or metadata.schema.column(i).path in wanted]
    return [metadata.row_group(group).column(place) for group in groups for place in places]


def _check_sizes(metadata: Any, groups: range, chunks: list[Any], where: str) -> int:
    """The compressed bytes of the wanted columns; CorpusError if the declared sizes need too much memory."""
    packed = int(sum(chunk.total_compressed_size for chunk in chunks))
    sizes = [chunk.total_uncompressed_size for chunk in chunks]
    rows = sum(metadata.row_group(group).num_rows for group in groups)
    if min([0, rows, packed, *sizes]) < 0:
        raise _damaged(where, "the footer declares a negative size")
    if max([0, *sizes]) > _CHUNK:
        raise CorpusError(
            f"a column has more than {_CHUNK >> 30} GB in one row group",
            where=where,
            remedy="write the file again with smaller row groups",
        )
    values = max([rows, *(chunk.num_values for chunk in chunks)])  # more than rows in lists
    if max(values, sum(sizes)) > largest_unpacked(packed):
        raise too_large(where, _REWRITE)
    return packed


def _is_bytes(kind: pa.DataType) -> bool:
    names = ("is_string", "is_large_string", "is_binary", "is_large_binary")
    return any(getattr(pa.types, name)(kind) for name in names)


def _check_kind(kind: pa.DataType, name: str, where: str, may_be_date: bool) -> pa.DataType:
    """The type of a column; CorpusError if its values cannot be texts or labels, or dates where these are allowed."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    simple = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    is_date = may_be_date and pa.types.is_temporal(value)
    if not (_is_bytes(value) or is_date or any(is_kind(value) for is_kind in simple)):
        raise CorpusError(
            f"column {name!r} holds {str(kind)[:100]}, not text or numbers", where=where, remedy="choose another column"
        )
    return kind


def _sizes(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The decoded bytes of the strings in each row."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        sizes += _lengths(column)
    return sizes


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not _is_bytes(values.type):
        return np.zeros(len(column), np.int64)
    sizes: npt.NDArray[np.int64] = np.asarray(pc.fill_null(pc.binary_length(values), 0)).astype(np.int64)
    if values is column:
        return sizes
    return np.take(np.append(sizes, 0), np.asarray(pc.fill_null(column.indices, len(sizes))))


def _nested_lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """The decoded bytes of the strings in each value of any type; each element of a list counts 8 more."""
    kind = column.type
    if pa.types.is_struct(kind):
        return sum(map(_nested_lengths, column.flatten()), start=np.zeros(len(column), np.int64))
    if pa.types.is_map(kind):
        inner = _nested_lengths(column.keys) + _nested_lengths(column.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _nested_lengths(column.values)
    else:
        return _lengths(column)
    ends = np.concatenate([[0], np.cumsum(inner + 8)])
    lengths: npt.NDArray[np.int64] = np.diff(ends[np.asarray(column.offsets)])
    return lengths


def _in_microseconds(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without nanoseconds, which Python's times do not have."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz), safe=False)
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns"
        else column
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _slices(sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows that decode to at most _SLICE bytes; a longer row is a range of its own."""
    first, held = 0, 0
    for row, size in enumerate(sizes.tolist()):
        if row > first and held + size > _SLICE:
            yield first, row
            first, held = row, 0
        held += size
    if first < len(sizes):
        yield first, len(sizes)


def _batch(rows: pa.RecordBatch, columns: Columns, first: int, unlabelled: bool) -> RowBatch:
    lines = np.arange(first, first + rows.num_rows)
    too_long = _sizes(rows) > MAX_LINE
    rejects = [Reject(int(line), "line too long") for line in lines[too_long]]
    rows, lines, spanned = rows.filter(pa.array(~too_long)), lines[~too_long], rows.num_rows
    text = _strings(rows.column(columns.text))
    rating = (
        _strings(rows.column(columns.rating)) if columns.rating else pa.array([""] * rows.num_rows, pa.large_string())
    )
    if unlabelled:
        rating = pc.fill_null(rating, NO_RATING)
    if columns.title:
        title = _strings(rows.column(columns.title))
        text = pc.if_else(
            pc.is_valid(title), pc.binary_join_element_wise(title, text, pa.scalar(" ", pa.large_string())), text
        )
    no_text, no_rating = (np.asarray(pc.is_null(column)) for column in (text, rating))
    rejects += [Reject(int(line), "missing text") for line in lines[no_text]]
    rejects += [Reject(int(line), "missing rating") for line in lines[no_rating & ~no_text]]
    good = pa.array(~(no_text | no_rating))
    # Copy without nulls, so that the buffers hold exactly these rows.
    text, rating = (pa.concat_arrays([column.filter(good)]) for column in (text, rating))
    return make_batch(text, rating, lines[~(no_text | no_rating)], rejects, spanned)


def _strings(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type):
        column = column.view(pa.string())  # make_batch checks that it is UTF-8
    if pa.types.is_large_binary(column.type):
        column = column.view(pa.large_string())
    return column.cast(pa.large_string())
