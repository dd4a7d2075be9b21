"""`tenor train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.cli.words import metrics_table
from tenor.training.settings import TrainSettings


@command(example="tenor train data --out run --cell gru --epochs 3 --workers 2", settings=TrainSettings)
def train(
    console: Console,
    data: Annotated[
        str,
        typer.Argument(
            help="A folder made by `tenor prepare`, or the word points with --task points.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The run folder to make.")],
    settings: TrainSettings,
    compare: Annotated[str, typer.Option("--compare", help="Train several cells and put them side by side.")] = "",
) -> None:
    """Train a recurrent sentiment model, over as many workers as there are cores."""
    import tenor
    from tenor.world import detect

    if compare:
        _compare(console, data, out, settings, compare.split(","))
        return
    result = tenor.train(data, out, settings, progress=console.progress()).as_dict()
    if not detect().is_first:  # one of many that a launcher started: rank 0 speaks for all
        return
    human = f"{result['steps']:,} steps in {result['seconds']:.1f} s, {result['samples_per_s']:,.0f} samples/s"
    console.result(result, f"{human}\n{metrics_table(result['test'] or result['valid'])}\nrun: {out}")


def _compare(console: Console, data: str, out: Path, settings: TrainSettings, cells: list[str]) -> None:
    from tenor.training.compare import compare

    result = compare(data, out, settings, cells, console.progress())
    names = list(result.rows[0])
    console.result(
        result.as_dict(), f"{table(names, [[row[name] for name in names] for row in result.rows])}\nruns: {out}"
    )
