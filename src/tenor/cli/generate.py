"""`tenor generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.corpus.generation import GenerateSettings


@command(example="tenor generate reviews.jsonl --rows 100000 --seed 1", settings=GenerateSettings)
def generate(
    console: Console,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The JSON-lines file to write.")],
    settings: GenerateSettings,
) -> None:
    """Write a synthetic review corpus whose best possible accuracy is known."""
    from tenor.corpus.synthetic import generate as run

    console.result(run(out, settings, console.progress()).as_dict())
