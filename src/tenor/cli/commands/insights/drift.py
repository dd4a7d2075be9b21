"""`tenor drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.insights.settings import DriftSettings

DIFFERENT_CODE = 3  # exit code for reviews that are different


@command(
    example="tenor drift run new-reviews.jsonl.gz && echo 'still the same kind of reviews'", settings=DriftSettings
)
def drift(
    console: Console,
    run: Annotated[Path, typer.Argument(help="Run folder made by `tenor train`.", metavar="RUN", show_default=False)],
    files: Annotated[
        list[str],
        typer.Argument(help="Files, folders or globs of new reviews.", metavar="FILE...", show_default=False),
    ],
    settings: DriftSettings,
) -> None:
    """Tell whether new reviews are like those of the run's data: unknown words, lengths, predictions and phrases.

    Exit code 0 means the same, 3 different; 1 and 2 mean that nothing could be compared.
    """
    import tenor
    from tenor.preparation.job.startup import announce

    announce(console.progress())
    found = tenor.measure_drift(run, files, settings, console.progress())
    console.result(found.as_dict(), _summary(found.as_dict()))
    if found.verdict != "same":
        raise typer.Exit(DIFFERENT_CODE)


def _summary(values: dict[str, Any]) -> str:
    low, high = values["auc_interval"]
    rows = [
        ["reviews compared", values["rows_reference"], values["rows"]],
        ["unknown words", values["unknown_words_reference"], values["unknown_words"]],
        ["median length in words", values["lengths_reference"]["median"], values["lengths"]["median"]],
    ]
    for name, new in values["predicted"].items():
        rows.append([f"predicted {name}", values["predicted_reference"][name]["share"], new["share"]])
    parts = [
        f"{values['verdict']}: the domain classifier has an AUC of {values['auc']:.3f} ({low:.3f} to {high:.3f}); "
        f"different means at least {values['effect']:g}",
        table(["", "run's data", "new"], rows),
    ]
    if values["phrases"]:
        changed = [[row["phrase"], row["reference"], row["new"], row["z"]] for row in values["phrases"][:10]]
        parts.append(table(["changed phrases", "run's data", "new", "z"], changed))
    return "\n\n".join(parts)
