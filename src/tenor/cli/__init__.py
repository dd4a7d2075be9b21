"""The command line: one file a command; each parses, calls the library, prints."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from tenor import __version__

# The order of `tenor --help` is the way the data goes.
COMMANDS = ("demo", "generate", "prepare", "train", "evaluate", "predict", "bench", "report", "doctor")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tenor {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Raw reviews to a sentiment model you can trust, and what each added machine buys."""


def build_app() -> typer.Typer:
    """The typer application with every command that works."""
    app = typer.Typer(name="tenor", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.callback()(_root)
    for name in COMMANDS:
        module = importlib.import_module(f"tenor.cli.{name}")
        app.command(name)(getattr(module, name))
    return app


def main() -> None:
    build_app()(prog_name="tenor")
