"""One JSON object per line as Python reads it, for the lines that the compiled scanner leaves to Python."""

from __future__ import annotations

import json
from typing import Any

from tenor.corpus.batch import INVALID
from tenor.corpus.columns import Columns
from tenor.corpus.labels import NO_RATING


class _Raw(str):
    """A number or a constant as the file spells it."""


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs of key and value, so that a repeated key is noticed."""


_decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_Raw, parse_float=_Raw, parse_constant=_Raw)


def parse_object(line: bytes) -> list[tuple[str, Any]] | str:
    """The pairs of the JSON object on one line, or the reason why the line holds none."""
    try:
        value = _decoder.decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        return INVALID
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        return "invalid JSON"
    return value if isinstance(value, _Pairs) else "not a JSON object"


def read_line(line: bytes, columns: Columns, unlabelled: bool = False) -> tuple[str, str] | str:
    """(text, rating) of one line as Python reads it, or the reason to reject the line.

    `unlabelled` keeps a line whose rating is missing or null, with an empty rating.
    """
    pairs = parse_object(line)
    if isinstance(pairs, str):
        return pairs
    wanted = [name for name in (columns.text, columns.rating, columns.title) if name]
    named = [(key, value) for key, value in pairs if key in wanted]
    values = dict(named)
    if len(values) != len(named):
        return "repeated key"
    rating = values.get(columns.rating) if columns.rating else NO_RATING
    if rating is None and unlabelled:
        rating = NO_RATING
    return _row(values.get(columns.text), rating, values.get(columns.title or ""))


def _row(text: Any, rating: Any, title: Any) -> tuple[str, str] | str:
    if type(text) is not str:
        return "missing text" if text is None else "text is not a string"
    if rating is None:
        return "missing rating"
    if isinstance(rating, bool):
        rating = str(rating).lower()
    if not isinstance(rating, str) or (isinstance(rating, _Raw) and not rating.lstrip("-")[:1].isdigit()):
        return "bad rating"
    text = f"{title} {text}" if type(title) is str else text
    try:
        (text + rating).encode()
    except UnicodeEncodeError:
        return "lone surrogate"
    return text, str(rating)
