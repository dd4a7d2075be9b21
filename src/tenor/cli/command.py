"""What every command shares: settings as options, --config, --json, --debug, errors in one line, exit codes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tenor import settings as tenor_settings
from tenor.cli.console import Console
from tenor.errors import TenorError

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def command(example: str, settings: type[Any] | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that takes a `console` first and, where `settings` is given, a `settings` value.

    The fields of the settings become options, beside `--config FILE.toml` which fills them from a file.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        parameters = [p.replace(kind=_KEYWORD) for name, p in own.items() if name not in ("console", "settings")]
        if settings is not None:
            parameters += [*_options(settings), _CONFIG]
        parameters += [_JSON, _DEBUG]

        @functools.wraps(function)
        def run(**values: Any) -> None:
            context = values.pop("context")
            console = Console(json=values.pop("json"), debug=values.pop("debug"))
            with _errors(console):
                if settings is not None:
                    values = _gather(settings, context, values)
                function(console, **values)

        context = inspect.Parameter("context", _KEYWORD, annotation=typer.Context)
        run.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in [context, *parameters]}
        run.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n[dim]Example:[/dim] {example}"
        return run

    return decorate


def _options(settings: type[Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(settings)
    return [_option(field, hints[field.name]) for field in dataclasses.fields(settings)]


def _option(field: dataclasses.Field[Any], kind: Any) -> inspect.Parameter:
    flag = "--" + field.name.replace("_", "-")
    text = field.metadata["help"]
    if choices := field.metadata["choices"]:
        text += f" One of: {', '.join(choices)}."
    if owners := field.metadata["owners"]:
        text += f" For {', '.join(owners)}."
    flags = (f"{flag}/--no-{flag[2:]}",) if kind is bool else (flag,)
    annotation = Annotated[kind, typer.Option(*flags, help=text, show_default=field.default not in (None, ""))]
    return inspect.Parameter(field.name, _KEYWORD, annotation=annotation, default=field.default)


_CONFIG = inspect.Parameter(
    "config",
    _KEYWORD,
    default=None,
    annotation=Annotated[Path | None, typer.Option("--config", help="Read options from a TOML file.")],
)
_JSON = inspect.Parameter(
    "json",
    _KEYWORD,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")],
)
_DEBUG = inspect.Parameter(
    "debug",
    _KEYWORD,
    default=False,
    annotation=Annotated[bool, typer.Option("--debug", help="Show tracebacks.")],
)


def _gather(settings: type[Any], context: typer.Context, values: dict[str, Any]) -> dict[str, Any]:
    """Collect the settings' options into one value; only what the caller typed wins over the file."""
    names = {field.name for field in dataclasses.fields(settings)}
    given = {
        name: values[name] for name in names if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"
    }
    rest = {name: value for name, value in values.items() if name not in names and name != "config"}
    return {**rest, "settings": tenor_settings.build(settings, given, values["config"])}


class _errors:  # noqa: N801 - reads as a with-statement's verb
    """Turn an error into one line and an exit code; `--debug` lets the traceback through."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or self.console.debug:
            return
        if isinstance(error, TenorError):
            self.console.error(str(error))
            raise typer.Exit(error.exit_code)
        if isinstance(error, KeyboardInterrupt):
            self.console.error("interrupted")
            raise typer.Exit(130)
        if isinstance(error, BrokenPipeError):  # the reader of our output left, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1)
        if isinstance(error, OSError):
            self.console.error(f"{error.filename or 'system'}: {error.strerror or error}")
            raise typer.Exit(1)
