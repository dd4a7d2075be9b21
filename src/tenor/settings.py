"""Settings are frozen dataclasses beside their owners; one field is a command's option, a TOML key and an argument.

A field declared with `setting(default, "help")` becomes `--name` on the command line (underscores turn to dashes).
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

from tenor.errors import UsageError

T = TypeVar("T")


def setting(default: Any, help_text: str, choices: tuple[str, ...] = (), owners: tuple[str, ...] = ()) -> Any:
    """A dataclass field that carries the text its option shows, the words it may take, and who alone looks at it."""
    return dataclasses.field(default=default, metadata={"help": help_text, "choices": choices, "owners": owners})


def build(kind: type[T], changes: dict[str, Any], file: Path | None = None) -> T:
    """Make settings from their defaults, a TOML file over them, and explicit changes over both."""
    values = {**(_read_toml(kind, file) if file else {}), **changes}
    settings = kind(**values)
    check(settings)
    return settings


def check(settings: Any) -> None:
    """Refuse a word that is not among a field's choices, naming those that are."""
    for field in dataclasses.fields(settings):
        choices = field.metadata.get("choices", ())
        value = getattr(settings, field.name)
        if choices and value is not None and value not in choices:
            option = "--" + field.name.replace("_", "-")
            raise UsageError(f"{option} does not know {value!r}", remedy=f"choose one of {', '.join(choices)}")


def owned(kind: type[Any]) -> dict[str, tuple[str, ...]]:
    """The fields that only some look at, such as strategies or scenarios, and who they are."""
    found = ((field.name, field.metadata.get("owners", ())) for field in dataclasses.fields(kind))
    return {name: owners for name, owners in found if owners}


def refuse_others(settings: Any, owner: str, place: str) -> None:
    """What would silently do nothing is an error. `place` is how an owner is chosen, such as `--strategy {}`."""
    for field in dataclasses.fields(settings):
        value, owners = getattr(settings, field.name), field.metadata.get("owners", ())
        if value != field.default and owners and owner not in owners:
            option = f"--{field.name.replace('_', '-')}" + ("" if value is True else f" {value}")
            remedy = f"use {place.format(' or '.join(owners))}, or leave it away"
            raise UsageError(f"{option} with {place.format(owner)}", remedy=remedy)


def _read_toml(kind: type[Any], file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read settings: {error.strerror}", where=file) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not valid TOML: {error}", where=file, remedy="correct the file") from error
    known = typing.get_type_hints(kind)
    values = {name.replace("-", "_"): value for name, value in values.items()}
    for name, value in values.items():
        if name not in known:
            raise UsageError(
                f"unknown setting {name!r}", where=file, remedy=f"known ones are {', '.join(sorted(known))}"
            )
        values[name] = _fit(value, known[name], name, file)
    return values


def _fit(value: Any, wanted: Any, name: str, file: Path) -> Any:
    """Check a TOML value against the field's type; an integer is a fine float, an array a tuple of words."""
    kinds = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    for kind in kinds:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if typing.get_origin(kind) is tuple and isinstance(value, list):
            return tuple(value)
        if kind is Path and isinstance(value, str):
            return Path(value)
        if isinstance(kind, type) and isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
            return value
    raise UsageError(f"setting {name!r} cannot be {value!r}", where=file, remedy=f"it wants {wanted}")
