"""`tenor generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.corpus.synthetic.settings import GenerateSettings


@command(example="tenor generate reviews.jsonl --rows 100000 --seed 1", settings=GenerateSettings)
def generate(
    console: Console,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="JSON lines file to write.")],
    settings: GenerateSettings,
) -> None:
    """Write a synthetic review corpus with a known best possible accuracy."""
    from tenor.corpus.synthetic.generate import generate as run

    console.result(run(out, settings, console.progress()).as_dict())
