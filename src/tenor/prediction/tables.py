"""Rows of the output as Arrow tables, and their way into a CSV or Parquet file.

The columns of all pieces must be known before the first row of a file is written. So a piece is a stream of tables,
each with columns of its own. A table is small, so memory does not grow with the piece. In CSV the columns of the input
are text. In Parquet truth values, numbers and dates keep their type if the whole column has it.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]
PROBABILITY = "probability_"  # before the name of a class: a column with its probability

_OWN = {"line": pa.int64(), "probability": pa.float64(), "known_words": pa.int64(), "abstained": pa.bool_()}
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), dt.date: pa.date32()}
_EXACT = 1 << 53  # whole numbers up to here are exact as floating-point numbers


def as_table(rows: Sequence[Row], keep_types: bool) -> pa.Table:
    """The rows as an Arrow table.

    Args:
        rows: Some rows, which may have different columns.
        keep_types: Whether numbers of the input stay numbers; if not, they become text.
    """
    own = {PROBABILITY + label: pa.float64() for row in rows for label in row.get("probabilities", ())} | _OWN
    flat = [_flat(row) for row in rows]
    columns = {name: [row.get(name) for row in flat] for name in dict.fromkeys(name for row in flat for name in row)}
    kinds = {name: own.get(name) or (_kind_of(columns[name]) if keep_types else pa.string()) for name in columns}
    return pa.table({name: _array(values, kinds[name]) for name, values in columns.items()})


def _flat(row: Row) -> Row:
    """The row with a column per class in place of `probabilities`."""
    flat: Row = {}
    for name, value in row.items():
        flat |= {PROBABILITY + label: p for label, p in value.items()} if name == "probabilities" else {name: value}
    return flat


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(list(map(as_text, values)) if kind == pa.string() else values, kind)


def _kind_of(values: Sequence[Any]) -> pa.DataType:
    """The type of a column of the input; text if its values have none in common."""
    types = {type(value) for value in values if value is not None}
    if not types:
        return pa.null()
    if types == {int, float} and all(abs(value) <= _EXACT for value in values if type(value) is int):
        return pa.float64()
    if types == {int} and not all(-(1 << 63) <= value < 1 << 63 for value in values if value is not None):
        return pa.string()
    if types == {dt.datetime}:
        zones = {value.tzinfo for value in values if value is not None}
        return pa.timestamp("us", "UTC" if zones != {None} else None) if len(zones) == 1 else pa.string()
    return _KINDS.get(types.pop(), pa.string()) if len(types) == 1 else pa.string()


def as_text(value: Any) -> str | None:
    """A value as text: numbers, truth values, lists and objects as in JSON, a date as ISO says it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _tables(files: Sequence[Path]) -> Iterator[pa.Table]:
    """The tables of all pieces, one after another."""
    for path in files:
        with path.open("rb") as file:
            while file.peek(1):
                with pa.ipc.open_stream(file) as stream:
                    yield stream.read_all()


def _schema(files: Sequence[Path]) -> pa.Schema:
    """The columns of all tables, each with a type that fits its values in every table."""
    found: dict[str, set[pa.DataType]] = {}
    inexact = set()  # columns with a whole number that no floating-point number equals
    for table in _tables(files):
        for name, column in zip(table.column_names, table.columns, strict=True):
            found.setdefault(name, set()).add(column.type)
            if column.type == pa.int64() and not _is_exact(column):
                inexact.add(name)
    return pa.schema([(name, _common(kinds - {pa.null()}, name in inexact)) for name, kinds in found.items()])


def _is_exact(column: pa.ChunkedArray) -> bool:
    ends = [value for value in pc.min_max(column).as_py().values() if value is not None]
    return all(abs(value) <= _EXACT for value in ends)


def _common(kinds: set[pa.DataType], is_inexact: bool) -> pa.DataType:
    if len(kinds) == 1:
        return next(iter(kinds))
    return pa.float64() if kinds == {pa.int64(), pa.float64()} and not is_inexact else pa.string()


def join_csv(files: Sequence[Path], out: Path) -> None:
    """Write the tables of all pieces as a CSV file."""
    names = _schema(files).names
    with out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, names, restval="", lineterminator="\n")
        rows.writeheader()
        for table in _tables(files):
            rows.writerows(table.to_pylist())


def join_parquet(files: Sequence[Path], out: Path) -> None:
    """Write the tables of all pieces as a Parquet file."""
    import pyarrow.parquet as pq  # here, because it takes a while and other outputs do without

    schema = _schema(files)
    with pq.ParquetWriter(out, schema) as writer:
        for table in _tables(files):
            names = set(table.column_names)
            columns = [
                _cast(table.column(field.name), field.type) if field.name in names else pa.nulls(len(table), field.type)
                for field in schema
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return _array(column.to_pylist(), kind) if kind == pa.string() != column.type else column.cast(kind)
