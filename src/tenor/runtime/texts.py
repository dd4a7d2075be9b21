"""Check the texts that a Python caller passes: a list, NumPy array, pandas Series or Arrow array of strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from tenor.corpus.columns import ColumnChooser, Wanted
from tenor.errors import UsageError

Texts: TypeAlias = Iterable[Any]  # strings or missing values; see `as_texts`


def as_texts(texts: Texts) -> list[str] | pa.Array | pa.ChunkedArray:
    """The texts as strings. A missing value (None, NaN, pandas' NA) becomes an empty text.

    Raises:
        UsageError: `texts` is a single string or no column of texts, or contains a value that is not a string.
    """
    texts = _column(texts)
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        return _of_arrow(texts)
    if isinstance(texts, str | bytes):
        raise UsageError("got one string instead of a list of texts", remedy=f"pass a list: [{_short(texts)}]")
    if (
        isinstance(texts, Mapping | set | frozenset)
        or not isinstance(texts, Iterable)
        or getattr(texts, "ndim", 1) != 1
    ):
        what = f"got a value of type {type(texts).__name__} instead of a list of texts"
        raise UsageError(what, remedy="pass one column of texts")
    return [text if isinstance(text, str) else _missing(text, place) for place, text in enumerate(texts)]


def _column(texts: Any) -> Any:
    """The column of texts of a table of Arrow, pandas or Polars; a column of Polars as Arrow; else as it is."""
    if hasattr(texts, "collect_schema") and hasattr(texts, "collect"):  # a LazyFrame of Polars
        texts = texts.collect()
    names = getattr(texts, "column_names", None) or getattr(texts, "columns", None)
    if names is not None and not isinstance(texts, Mapping):
        chosen = ColumnChooser(Wanted(), "the table", with_rating=False)([str(name) for name in names]).text
        texts = texts[chosen]
    return texts.to_arrow() if type(texts).__module__.startswith("polars") else texts


def _of_arrow(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    kind = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
    if pa.types.is_string_view(kind):
        texts, kind = texts.cast(pa.large_string()), pa.large_string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise UsageError(f"got an Arrow array of {kind} instead of strings", remedy="pass a column of texts")
    return texts.cast(pa.large_string()).fill_null("") if texts.null_count or kind is not texts.type else texts


def _missing(value: Any, place: int) -> str:
    """An empty text for a missing value; UsageError for anything else."""
    if _is_missing(value):
        return ""
    raise UsageError(
        f"text {place} (counted from 0) is not a string but {type(value).__name__} {_short(value)}",
        remedy="pass strings, such as str(value); None and NaN count as empty texts",
    )


def _is_missing(value: Any) -> bool:
    """Whether the value stands for a missing one, as in a pandas column.

    Arrow decides, except for NumPy's NaNs: Arrow recognises only some of them.
    """
    if isinstance(value, np.floating):
        return bool(np.isnan(value))
    try:
        return bool(pa.array([value], from_pandas=True).null_count == 1)
    except (pa.ArrowException, TypeError, OverflowError):
        return False


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:39] + "…"
