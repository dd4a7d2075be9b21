"""Settings: frozen dataclasses where one field is a command-line option, a TOML key and a Python argument.

A field declared with `setting(default, "help text")` becomes the option `--name`, with dashes for underscores. Commands
that share options inherit from the same settings class. Error messages write a setting as an option; `tenor.errors`
replaces the option by the argument's name for Python callers.
"""

from __future__ import annotations

import dataclasses
import difflib
import numbers
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tenor.errors import ARGUMENTS, UsageError
from tenor.toml import read_toml

T = TypeVar("T")
AUTO_WORKERS = "auto"
_OPTIONS = {argument: option for option, argument in ARGUMENTS.items()}
CHOSEN: Any = None  # the default of settings that a command chooses, see `setting`


def setting(
    default: Any, help_text: str, choices: tuple[str, ...] = (), owners: tuple[str, ...] = (), group: str | None = None
) -> Any:
    """Declare one setting as a dataclass field.

    Args:
        default: The value of a setting that is not given. CHOSEN means that the command chooses it by its other
            settings and the data; the field has its declared type once that has happened.
        help_text: One or two sentences for `--help` and the command reference.
        choices: The values that are allowed; empty means any value.
        owners: The strategies or scenarios that use the setting; empty means all of them.
        group: The heading under which `--help` lists the option; None means the general options.
    """
    metadata = {"help": help_text, "choices": choices, "owners": owners, "group": group}
    return dataclasses.field(default=default, metadata=metadata)


class Settings:
    """Base class of all settings. A subclass that checks more overrides `__post_init__` and calls this one first."""

    def __post_init__(self) -> None:
        check(self)


def option_name(name: str) -> str:
    """`batch_size` as `--batch-size`."""
    return "--" + _OPTIONS.get(name, name).replace("_", "-")


def wrong_value(name: str, value: object, remedy: str) -> UsageError:
    """The error for a setting that has a value it cannot have."""
    return UsageError(f"{option_name(name)} cannot be {value!s:.100}", remedy=remedy)


def either(words: Sequence[str]) -> str:
    """Such as `local-sgd, diloco or hogwild`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def build(kind: type[T], changes: dict[str, Any], file: Path | None = None) -> T:
    """Make settings from the defaults, a TOML file that overrides them, and `changes` that override both."""
    settings = kind(**given(kind, changes, file))
    check(settings)
    return settings


def given(kind: type[Any], changes: dict[str, Any], file: Path | None = None) -> dict[str, Any]:
    """The settings that the user gave, in a TOML file or as `changes`, which override the file."""
    return {**(_read_toml(kind, file) if file else {}), **changes}


def chosen(kind: type[T], settings: T | None, options: Mapping[str, Any]) -> T:
    """The settings that a Python caller means: the keywords override the settings object, or else the defaults.

    Args:
        kind: The settings class of the function.
        settings: What the caller passed as `settings`.
        options: The other keywords that the caller passed.

    Raises:
        UsageError: A keyword is not a setting, or a value is not allowed.
    """
    if settings is not None and not isinstance(settings, kind):
        remedy = f"pass tenor.{kind.__name__}(…), or each setting as a keyword"
        raise UsageError(f"settings cannot be of the type {type(settings).__name__}", remedy=remedy)
    known = field_names(kind)
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"known settings are {', '.join(sorted(known))}"
            raise UsageError(f"there is no setting {name!r}", remedy=remedy)
    values = typed(kind, {name: _plain(value) for name, value in options.items()})
    return dataclasses.replace(settings, **values) if settings is not None else kind(**values)  # type: ignore[type-var]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def field_names(kind: type[Any]) -> set[str]:
    """The names of all settings in a class, inherited ones included."""
    return {field.name for field in dataclasses.fields(kind)}


def changed(settings: Any) -> set[str]:
    """The names of the settings that differ from their defaults."""
    return {field.name for field in dataclasses.fields(settings) if getattr(settings, field.name) != field.default}


def check(settings: Any) -> None:
    """Raise UsageError if a setting has a value that is not among its choices."""
    for field in dataclasses.fields(settings):
        choices = field.metadata.get("choices", ())
        value = getattr(settings, field.name)
        if choices and value is not None and value not in choices:
            raise wrong_value(field.name, repr(value), f"choose one of {', '.join(choices)}")


def parse_workers(value: object) -> int | str:
    """Check a number of workers. The same forms are valid in Python, in TOML and on the command line.

    Args:
        value: A number of at least 1, as an integer or as digits, or the word `auto` for one worker per core.

    Returns:
        The number as an integer, or `auto`. `tenor.environment.num_workers` replaces `auto` by a number.
    """
    text = str(value)
    if text == AUTO_WORKERS:
        return text
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or int(text) == 0:
        raise wrong_value("workers", value, "give a whole number of at least 1, or auto for one worker per core")
    return int(text)


def refuse_others(settings: Any, owner: str, place: str) -> None:
    """Raise UsageError if a setting was changed that `owner` ignores.

    Args:
        settings: The settings to check.
        owner: The strategy or scenario in use.
        place: How the user selects an owner, such as `--strategy {}`.
    """
    for field in dataclasses.fields(settings):
        value, owners = getattr(settings, field.name), field.metadata.get("owners", ())
        if value != field.default and owners and owner not in owners:
            option = option_name(field.name) + ("" if value is True else f" {value}")
            remedy = f"use {place.format(either(owners))}, or omit {option_name(field.name)}"
            raise UsageError(f"{option} has no effect with {place.format(owner)}", remedy=remedy)


def _read_toml(kind: type[Any], file: Path) -> dict[str, Any]:
    try:
        values = read_toml(file)
    except OSError as error:
        remedy = "give --config a TOML file that exists and can be read"
        raise UsageError(f"cannot read the settings: {error.strerror}", where=file, remedy=remedy) from error
    known = typing.get_type_hints(kind)
    values = {ARGUMENTS.get(name, name.replace("-", "_")): value for name, value in values.items()}
    for name in values:
        if name not in known:
            raise UsageError(
                f"has the unknown setting {name!r}", where=file, remedy=f"known settings are {', '.join(sorted(known))}"
            )
    return typed(kind, values, file)


def typed(kind: type[Any], values: Mapping[str, Any], where: Path | None = None) -> dict[str, Any]:
    """Values for fields of a settings class, checked against the types of the fields.

    Args:
        kind: The settings class.
        values: Values by the names of fields. None is allowed where it is the default of the field.
        where: The file that they come from, for messages.

    Raises:
        UsageError: A value has a type that its field cannot have.
    """
    hints = typing.get_type_hints(kind)
    empty = {field.name for field in dataclasses.fields(kind) if field.default is None}
    return {
        name: None if value is None and name in empty else _convert(value, hints[name], name, where)
        for name, value in values.items()
    }


def _convert(value: Any, wanted: Any, name: str, file: Path | None) -> Any:
    """Check a value against the type of its field. An integer may stand for a float, an array for a tuple."""
    kinds = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    for kind in kinds:
        if kind in (int, float) and not isinstance(value, bool) and isinstance(value, numbers.Integral):
            return kind(int(value))  # also an integer of NumPy
        if typing.get_origin(kind) is tuple and isinstance(value, list):
            return tuple(value)
        if kind is Path and isinstance(value, str):
            return Path(value)
        if isinstance(kind, type) and isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
            return value
    words = " or ".join(_TYPE_NAMES.get(kind, str(kind)) for kind in kinds if kind is not types.NoneType)
    raise UsageError(f"{name} cannot be {value!r}", where=file, remedy=f"give {words}")


_TYPE_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    Path: "a path as a string",
}
