"""Records as JSON objects and back: the one conversion by which tasks and results cross process boundaries.

A record is a frozen dataclass. Its fields are numbers, strings, booleans, None, other records, or tuples, frozensets
and dicts of them. The annotated types say how a JSON value is read back; of a union, the first type that fits. A field
of type Any holds JSON values and comes back as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import types
import typing
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")


def to_json(record: Any) -> Json:
    """The record as an object that JSON can hold."""
    values: Json = _plain(record)
    return values


def from_json(kind: type[T], values: Json) -> T:
    """Read back a record of the given class.

    Raises:
        ValueError: `values` do not have the fields of the record, or a value is of another type than its field.
    """
    record: T = _read(kind, values)
    return record


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(_plain, value))
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _read(kind: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        return _read_record(kind, value)
    if kind is Any:
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return _read_union(arguments, value)
    if origin in (tuple, frozenset):  # `tuple[X, ...]`: every item is of the same type
        _check(isinstance(value, list), kind, value)
        return origin(_read(arguments[0], item) for item in value)
    if origin is dict:
        _check(isinstance(value, dict), kind, value)
        return {name: _read(arguments[1], item) for name, item in value.items()}
    _check(type(value) is kind or (kind is float and type(value) is int), kind, value)
    return value


def _read_union(kinds: tuple[Any, ...], value: Any) -> Any:
    """Read `X | None` or `X | Y`: the first class that the value fits."""
    for kind in kinds:
        with contextlib.suppress(ValueError):
            return _read(kind, value)
    raise ValueError(f"{value!r:.80} cannot be read as any of {kinds}")


def _read_record(kind: Any, value: Any) -> Any:
    fields = _field_types(kind)
    _check(isinstance(value, dict) and set(value) == set(fields), kind, value)
    return kind(**{name: _read(fields[name], item) for name, item in value.items()})


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _check(fits: bool, kind: Any, value: Any) -> None:
    if not fits:
        raise ValueError(f"{value!r:.80} cannot be read as {getattr(kind, '__name__', kind)}")
