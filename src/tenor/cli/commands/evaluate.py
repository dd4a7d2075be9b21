"""`tenor evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.cli.summaries import accounting, metrics_table
from tenor.prediction.settings import EvaluateSettings


@command(example="tenor evaluate run data", settings=EvaluateSettings)
def evaluate(
    console: Console,
    run: Annotated[Path, typer.Argument(help="Run folder made by `tenor train`.", metavar="RUN", show_default=False)],
    data: Annotated[
        str,
        typer.Argument(help="Folder of prepared data, or a raw file with labels.", metavar="DATA", show_default=False),
    ],
    settings: EvaluateSettings,
) -> None:
    """Measure a model on labelled reviews, beside the majority baseline, and account for every row."""
    import tenor
    from tenor.preparation.job.startup import announce

    if not Path(data).is_dir():
        announce(console.progress())
    result = tenor.evaluate(run, data, settings, console.progress()).as_dict()
    names = list(result["per_class"])
    rows = [[f"true {name}", *counts] for name, counts in zip(names, result["confusion"], strict=True)]
    confusion = table(["", *(f"predicted {name}" for name in names)], rows)
    measured_on = f"{settings.split} split" if Path(data).is_dir() else Path(data).name
    console.result(result, f"{metrics_table(result, measured_on)}\n\n{confusion}\n\n{accounting(result)}")
