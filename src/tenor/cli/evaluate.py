"""`tenor evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.cli.words import metrics_table
from tenor.prediction.settings import EvaluateSettings


@command(example="tenor evaluate run data", settings=EvaluateSettings)
def evaluate(
    console: Console,
    run: Annotated[Path, typer.Argument(help="A folder made by `tenor train`.", show_default=False)],
    data: Annotated[str, typer.Argument(help="Prepared data, or a raw file with labels.", show_default=False)],
    settings: EvaluateSettings,
) -> None:
    """Measure a model, each figure beside the majority baseline."""
    import tenor

    result = tenor.evaluate(run, data, settings, console.progress()).as_dict()
    names = list(result["per_class"])
    rows = [[f"true {name}", *counts] for name, counts in zip(names, result["confusion"], strict=True)]
    confusion = table(["", *(f"said {name}" for name in names)], rows)
    console.result(result, f"{metrics_table(result)}\n\n{confusion}")
