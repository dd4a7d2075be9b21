"""`tenor train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.cli.summaries import metrics_table
from tenor.training.settings import OUTPUT, TrainSettings


@command(
    example="tenor train data --out run --cell gru --epochs 3 --workers 2",
    settings=TrainSettings,
    owned_by="with --strategy {}",
)
def train(
    console: Console,
    data: Annotated[
        str,
        typer.Argument(
            help="Folder made by `tenor prepare`. With --task points: the word points.",
            metavar="DATA",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Run folder to create.", rich_help_panel=OUTPUT)],
    settings: TrainSettings,
    given: frozenset[str],
    compare: Annotated[
        str,
        typer.Option(
            "--compare",
            help="Train one model per cell, such as lstm,gru, and compare them in one table.",
            rich_help_panel=OUTPUT,
        ),
    ] = "",
) -> None:
    """Train a sentiment classifier on prepared data, with one worker process per core by default."""
    import tenor
    from tenor.world import detect

    if compare:
        _compare(console, data, out, settings, compare.split(","), given)
        return
    result = tenor.train(data, out, settings, progress=console.progress(), given=given).as_dict()
    if not detect().is_first:  # a launcher started several processes: only rank 0 prints
        return
    added = f" and {result['added_rows']:,} added rows" if result.get("added_rows") else ""
    human = f"{result['steps']:,} steps on {result['train_rows']:,} rows{added} in {result['seconds']:.1f} s"
    human += f", {result['samples_per_s']:,.0f} samples/s"
    if "vector_seconds" in result:
        human += f", after {result['vector_seconds']:.1f} s of learning word vectors"
    measured = result.get("rehearsal", result)
    split = "test" if measured["test"] else "valid"
    title = f"rehearsal, {split} split" if "rehearsal" in result else f"{split} split"
    if "profile" in result:
        human += f"\n{_profile(result['profile'])}\n"
    console.result(result, f"{human}\n{metrics_table(measured[split], title)}\nrun: {out}")


def _profile(profile: dict[str, Any]) -> str:
    """A table of where a step goes."""
    from tenor.training.profiling.collect import table_of

    title = f"where a step goes, mean of steps {profile['first_step']:,} to {profile['last_step']:,}"
    return f"\n{title}\n\n{table(*table_of(profile), decimals=2)}"


def _compare(
    console: Console, data: str, out: Path, settings: TrainSettings, cells: list[str], given: frozenset[str]
) -> None:
    from tenor.training.launching.compare import compare

    result = compare(data, out, settings, cells, console.progress(), given)
    names = list(result.rows[0])
    console.result(
        result.as_dict(), f"{table(names, [[row[name] for name in names] for row in result.rows])}\nruns: {out}"
    )
