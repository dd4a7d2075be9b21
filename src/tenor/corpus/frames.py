"""A table in memory as an input: a data frame of pandas or Polars, an Arrow table, or a dict of columns.

The columns to read are saved as a Parquet file first, because inputs are opened several times by several workers.
pandas and Polars are not imported: pyarrow takes their columns.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard

import pyarrow as pa

from tenor.corpus.columns import AUTO, ColumnChooser, Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.sources import find_sources
from tenor.errors import CorpusError, UsageError, naming

FRAME = "data frame"  # the name of the input in messages and in the list of rejected rows
ACCEPTED = "a data frame of pandas (2.2 or later) or Polars, an Arrow table, or a dict of columns"
_GROUP_BYTES, _GROUP_ROWS = 8 << 20, 1 << 17  # of a row group, so that several workers can read the file
_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError, RuntimeError, NotImplementedError)


class ArrowStream(Protocol):
    """What data frames of pandas and Polars and tables of Arrow have in common."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Frame: TypeAlias = ArrowStream | Mapping[str, Any]


@dataclass(frozen=True)
class FrameFile:
    """A saved frame.

    Attributes:
        path: The Parquet file.
        sha256: The hash of its content, by which a stopped job is recognised.
    """

    path: Path
    sha256: str

    def find(self, wanted: Wanted) -> list[Source]:
        """The frame as the only source of a list."""
        found = find_sources([self.path], replace(wanted, format=AUTO))
        return [replace(source, name=FRAME, stamp=self.sha256) for source in found]


def is_frame(value: object) -> TypeGuard[Frame]:
    """Whether the value is a table or a column in memory, and not the name of a file."""
    return isinstance(value, Mapping) or hasattr(value, "__arrow_c_stream__")


def refuse_frame(value: object, remedy: str) -> None:
    """UsageError if the value is a table in memory, for functions that read files alone."""
    if is_frame(value):
        raise UsageError(f"got a {type(value).__name__} instead of names of files", remedy=remedy)


@contextlib.contextmanager
def frame_sources(frame: Frame, wanted: Wanted, beside: Path) -> Iterator[list[Source]]:
    """The frame as the only source, saved in a hidden folder next to the path `beside` until it is no longer in use."""
    table = _table(frame, wanted, ())
    beside.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
    try:
        yield _save(table, folder).find(wanted)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save_frame(frame: Frame, wanted: Wanted, folder: Path, also: Sequence[str] = ()) -> FrameFile:
    """Save the columns to read as a Parquet file.

    Args:
        frame: A table in memory.
        wanted: Which columns to read.
        folder: Where to put the file.
        also: More columns to save, if the frame has them.

    Raises:
        CorpusError: The frame has no such columns or no rows, or a column mixes types.
        UsageError: The object is not a frame.
    """
    return _save(_table(frame, wanted, also), folder)


def _table(frame: Frame, wanted: Wanted, also: Sequence[str]) -> pa.Table:
    """The columns to read as an Arrow table with at least one row."""
    if wanted.format not in (AUTO, "parquet"):
        raise UsageError(f"--format {wanted.format} does not fit a data frame", remedy="omit it")
    names, column = _columns(frame)
    chosen = _chosen(names, wanted)
    chosen += [name for name in also if names.count(name) == 1 and name not in chosen]
    arrays = {name: _plain(_as_arrow(column(name), name)) for name in chosen}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} {length:,}" for name, length in lengths.items())
        raise CorpusError(f"columns differ in length: {listed}", where=FRAME, remedy="give one value per row")
    if not any(lengths.values()):
        raise CorpusError("holds no rows", where=FRAME, remedy="give a frame with reviews in it")
    return pa.table(arrays)


def _columns(frame: Frame) -> tuple[list[str], Callable[[str], Any]]:
    """The names of the columns, and a function that gives a column by its name."""
    if isinstance(frame, Mapping):
        keys = {str(key): key for key in frame}
        return [str(key) for key in frame], lambda name: frame[keys[name]]
    if _is_pandas_or_polars(frame) and hasattr(frame, "columns"):  # other columns may be no Arrow types
        found: Any = frame
        keys = {str(key): key for key in found.columns}
        return [str(key) for key in found.columns], lambda name: found[keys[name]]
    try:
        table = pa.table(frame)
    except _ERRORS as error:
        what = f"a {type(frame).__name__} is not a data frame: {_reason(error)}"
        raise UsageError(what, remedy=f"give {ACCEPTED}") from error
    return table.column_names, table.column


def _is_pandas_or_polars(frame: object) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pandas", "polars") for kind in type(frame).__mro__)


def _chosen(names: list[str], wanted: Wanted) -> list[str]:
    """The names of the columns to read, as they are chosen among the columns of a file."""
    try:
        columns = ColumnChooser(wanted, FRAME)(names)
    except CorpusError:
        if not wanted.unlabelled or wanted.rating:
            raise
        columns = ColumnChooser(wanted, FRAME, with_rating=False, only_unrated=True)(names)
    return list(dict.fromkeys(name for name in (columns.text, columns.rating, columns.title) if name))


def _as_arrow(values: Any, name: str) -> pa.ChunkedArray:
    """A column as Arrow has it; CorpusError if it is not a column of one type."""
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        what = f"column {name!r} is a {type(values).__name__}"
        raise CorpusError(what, where=FRAME, remedy="give a list or an array of values")
    try:
        if isinstance(values, pa.ChunkedArray):
            return values
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        array = pa.array(values, from_pandas=True)  # None and NaN are missing values
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    except _ERRORS as error:
        what = f"column {name!r} does not hold values of one type: {_reason(error)}"
        raise CorpusError(what, where=FRAME, remedy="convert the column to strings or numbers") from error


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without types that Parquet files do not have: categories and views of strings."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    kind = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(kind, kind)
    if kind is column.type:
        return column
    return pa.chunked_array([_cast(chunk, kind) for chunk in column.chunks], kind)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(values.type):  # Arrow has no cast from categories of string views
        return values.dictionary.cast(kind).take(values.indices)
    return values.cast(kind)


def _save(table: pa.Table, folder: Path) -> FrameFile:
    """Write the table without compression: readers distrust files that unpack to many times their size."""
    import pyarrow.parquet as pq  # here, because it takes a while and few callers need it

    path = folder / "frame.parquet"
    rows = max(1, min(_GROUP_ROWS, table.num_rows * _GROUP_BYTES // max(1, table.nbytes)))
    try:
        with naming(path):
            pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
    except (pa.ArrowException, NotImplementedError) as error:
        what = f"cannot be saved as a Parquet file: {_reason(error)}"
        raise CorpusError(what, where=FRAME, remedy="convert the columns to strings or numbers") from error
    with path.open("rb") as file:
        return FrameFile(path, hashlib.file_digest(file, "sha256").hexdigest())


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
