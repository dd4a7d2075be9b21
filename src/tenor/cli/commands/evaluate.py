"""`tenor evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.cli.summaries import accounting, behaviour_table, metrics_table, reliability_table
from tenor.errors import UsageError
from tenor.prediction.settings import EvaluateSettings


@command(example="tenor evaluate run data --behaviour", settings=EvaluateSettings)
def evaluate(
    console: Console,
    run: Annotated[Path, typer.Argument(help="Run folder made by `tenor train`.", metavar="RUN", show_default=False)],
    settings: EvaluateSettings,
    data: Annotated[
        str | None,
        typer.Argument(help="Folder of prepared data, or a raw file with labels.", metavar="DATA", show_default=False),
    ] = None,
    behaviour: Annotated[
        bool,
        typer.Option(
            "--behaviour",
            help="Also try written cases, such as negations, and store the result in the run folder. DATA may be "
            "omitted then.",
            metavar="",
        ),
    ] = False,
) -> None:
    """Measure a model on labelled reviews, beside the majority baseline, and account for every row."""
    import tenor

    if data is None and not behaviour:
        raise UsageError("there is nothing to measure on", remedy="give DATA, --behaviour or both")
    values: dict[str, Any] = {}
    shown = []
    if data is not None:
        values = _measure(console, run, data, settings)
        shown.append(_describe(values, f"{settings.split} split" if Path(data).is_dir() else Path(data).name))
    if behaviour:
        tried = tenor.check_behaviour(run, console.progress()).as_dict()
        values |= tried
        shown.append(behaviour_table(tried))
    console.result(values, "\n\n".join(shown))


def _measure(console: Console, run: Path, data: str, settings: EvaluateSettings) -> dict[str, Any]:
    import tenor
    from tenor.preparation.job.startup import announce

    if not Path(data).is_dir():
        announce(console.progress())
    return tenor.evaluate(run, data, settings, console.progress()).as_dict()


def _describe(result: dict[str, Any], measured_on: str) -> str:
    names = list(result["per_class"])
    rows = [[f"true {name}", *counts] for name, counts in zip(names, result["confusion"], strict=True)]
    confusion = table(["", *(f"predicted {name}" for name in names)], rows)
    learned = f"\nthe model learned from {result['train_rows']:,} rows" if result["train_rows"] is not None else ""
    parts = [metrics_table(result, measured_on), confusion, reliability_table(result), accounting(result) + learned]
    return "\n\n".join(parts)
