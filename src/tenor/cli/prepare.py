"""`tenor prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.preparation.settings import PrepareSettings


@command(example="tenor prepare reviews.jsonl.gz --out data", settings=PrepareSettings)
def prepare(
    console: Console,
    inputs: Annotated[list[str], typer.Argument(metavar="IN...", help="Review files.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to make.")],
    settings: PrepareSettings,
) -> None:
    """Turn raw reviews into token shards, and account for every row."""
    from tenor.preparation.job import prepare as run

    console.result(run(inputs, out, settings, console.progress()).as_dict())
