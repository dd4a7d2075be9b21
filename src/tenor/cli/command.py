"""What every command shares: settings as options, --config, --json, --debug, one-line errors and exit codes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import sys
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tenor import settings as tenor_settings
from tenor.cli.console import Console
from tenor.errors import TenorError

ONLY_TRAINING = ("torch", "safetensors", "h5py", "matplotlib")  # dependencies that the distribution tenor-runtime lacks
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_NOT_OPTIONS = ("console", "settings", "given")  # parameters of a command's function that are not options


def command(
    example: str, settings: type[Any] | None = None, owned_by: str = "{}", topics: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function into a command.

    The function takes a `console` first and, if `settings` is given, a `settings` value. The fields of the settings
    become options, and `--config FILE.toml` reads them from a file. A parameter `given` receives the names of the
    settings that were typed or stood in the file.

    Args:
        example: A command line that the help shows.
        settings: The settings class of the command.
        owned_by: How the help names the strategies or scenarios that use an option, such as `with --strategy {}`.
        topics: Names with a line about each, which the help lists before the example.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        parameters = [p.replace(kind=_KEYWORD) for name, p in own.items() if name not in _NOT_OPTIONS]
        if settings is not None:
            parameters += [*_options(settings, owned_by), _CONFIG]
        parameters += [_JSON, _DEBUG]

        @functools.wraps(function)
        def run(**values: Any) -> None:
            context = values.pop("context")
            console = Console(json=values.pop("json"), debug=values.pop("debug"))
            with _errors(console):
                if settings is not None:
                    values = _gather(settings, context, values)
                function(console, **{name: value for name, value in values.items() if name in own})

        context = inspect.Parameter("context", _KEYWORD, annotation=typer.Context)
        run.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in [context, *parameters]}
        run.__doc__ = _help_text(function.__doc__ or "", topics or {}, example)
        return run

    return decorate


def _help_text(text: str, topics: Mapping[str, str], example: str) -> str:
    """The paragraphs of a docstring, each on one line because the terminal's width is not known, topics, an example."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n")]
    if topics:
        paragraphs.append("\n".join(f"- {name}: {line}" for name, line in topics.items()))
    return "\n\n".join([*paragraphs, f"[dim]Example:[/dim] {example}"])


def _options(settings: type[Any], owned_by: str) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(settings)
    return [_option(field, hints[field.name], owned_by) for field in dataclasses.fields(settings)]


def _option(field: dataclasses.Field[Any], kind: Any, owned_by: str) -> inspect.Parameter:
    flag = tenor_settings.option_name(field.name)
    text = field.metadata["help"]
    if choices := field.metadata["choices"]:
        text += f" One of: {', '.join(filter(None, choices))}."
    if field.default is tenor_settings.CHOSEN and kind in (int, float, str, bool):  # a path has no default
        text += " Default: by --preset and the data."
    if owners := field.metadata["owners"]:
        text += f" Only {owned_by.format(tenor_settings.either(owners))}."
    flags = (f"{flag}/--no-{flag[2:]}",) if kind is bool else (flag,)
    option = typer.Option(
        *flags,
        help=text,
        show_default=field.default not in (None, "") and field.default is not False,
        metavar="" if kind is bool else None,  # the flags say enough, and help needs the columns
        rich_help_panel=field.metadata["group"],
    )
    kind = str if kind == int | str else kind  # such as "auto" or a number
    return inspect.Parameter(field.name, _KEYWORD, annotation=Annotated[kind, option], default=field.default)


_CONFIG = inspect.Parameter(
    "config",
    _KEYWORD,
    default=None,
    annotation=Annotated[
        Path | None, typer.Option("--config", help="Read options from a TOML file. Typed options override the file.")
    ],
)
_JSON = inspect.Parameter(
    "json",
    _KEYWORD,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.", metavar="")],
)
_DEBUG = inspect.Parameter(
    "debug",
    _KEYWORD,
    default=False,
    annotation=Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", metavar="")],
)


def _gather(settings: type[Any], context: typer.Context, values: dict[str, Any]) -> dict[str, Any]:
    """Collect the options that are settings into one value. Typed options override the file."""
    names = tenor_settings.field_names(settings)
    typed = {
        name: values[name] for name in names if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"
    }
    rest = {name: value for name, value in values.items() if name not in names and name != "config"}
    given = tenor_settings.given(settings, typed, values["config"])
    return {**rest, "settings": tenor_settings.build(settings, given), "given": frozenset(given)}


class _errors:  # noqa: N801 - used as a context manager
    """Print an error as one line and leave with its exit code; with `--debug` the traceback is shown."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or self.console.debug:
            return
        if isinstance(error, TenorError):
            self.console.error(error.for_command_line)
            raise typer.Exit(error.exit_code)
        if isinstance(error, ModuleNotFoundError) and error.name in ONLY_TRAINING:
            what = f"this command needs {error.name}, which tenor-runtime leaves out"
            self.console.error(f"{what}; install the whole of Tenor in another environment")
            raise typer.Exit(2)
        if isinstance(error, KeyboardInterrupt):
            self.console.error("interrupted")
            raise typer.Exit(130)
        if isinstance(error, BrokenPipeError):  # the program that reads our output has left, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1)
        if isinstance(error, OSError):
            self.console.error(f"{error.filename or 'system'}: {error.strerror or error}")
            raise typer.Exit(1)
