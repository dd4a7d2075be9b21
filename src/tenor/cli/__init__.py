"""The command line: `commands/` has one file per command, the modules here are what the commands share."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tenor import __version__
from tenor.threads import limit_spinning

# In the order of `tenor --help`, which follows the data through the stages.
COMMANDS = (
    "demo",
    "generate",
    "prepare",
    "embed",
    "neighbours",
    "train",
    "runs",
    "evaluate",
    "predict",
    "insights",
    "drift",
    "serve",
    "export",
    "bench",
    "plan",
    "report",
    "doctor",
)
# Of the commands that are in a folder of their own within `commands/`.
FOLDERS = {"embed": "words.", "neighbours": "words.", "insights": "insights.", "drift": "insights."}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tenor {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Turn raw reviews into a sentiment classifier, on a laptop or a cluster.

    Tenor also measures what each extra worker gains.
    """


def build_app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The typer application with these commands."""
    app = typer.Typer(name="tenor", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.callback()(_root)
    for name in names:
        module = importlib.import_module(f"tenor.cli.commands.{FOLDERS.get(name, '')}{name}")
        app.command(name)(getattr(module, name))
    return app


def main() -> None:
    limit_spinning()
    # If colorama is installed, numba prints an escape code at exit, after the JSON: mpirun gives its ranks a terminal
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    asked = sys.argv[1:2]
    # A program that runs one command loads only that one; the option parser decides about everything else.
    build_app(asked if asked and asked[0] in COMMANDS else COMMANDS)(prog_name="tenor")
