"""`tenor insights`."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import Stopped, UsageError
from tenor.insights.settings import InsightsSettings

_SHOWN = 10  # phrases, groups and suspects in the terminal


@command(example="tenor insights run reviews.jsonl.gz --by asin --time reviewTime", settings=InsightsSettings)
def insights(
    console: Console,
    run: Annotated[Path, typer.Argument(help="Run folder made by `tenor train`.", metavar="RUN", show_default=False)],
    files: Annotated[
        list[str],
        typer.Argument(help="Files, folders or globs of reviews.", metavar="FILE...", show_default=False),
    ],
    settings: InsightsSettings,
    out: Annotated[
        Path, typer.Option("--out", help="HTML file to write; the same name with .json gets the data.")
    ] = Path("insights.html"),
) -> None:
    """Report what customers say: shares of negative reviews, phrases, groups, label errors and near-duplicates.

    Ratings are optional. Label errors are judged by models that have not seen the review.
    """
    import tenor
    from tenor.preparation.job.startup import announce
    from tenor.reports.report import write_page
    from tenor.reports.sections.insights import insights_page, json_beside
    from tenor.store.atomic import check_target, write_bytes
    from tenor.store.strict import strict_json

    if json_beside(out) == out:
        what = "--out names the page; its data goes into a file of the same name with .json"
        raise UsageError(what, where=out, remedy="give a name that ends with .html")
    for target in (out, json_beside(out)):
        check_target(target)
    if not settings.cluster:
        announce(console.progress())
    signal.signal(signal.SIGTERM, _stop)
    began = time.perf_counter()
    values = tenor.find_insights(run, files, settings, console.progress()).as_dict()
    values |= {"seconds": time.perf_counter() - began, "report": str(out)}
    write_page(out, insights_page(values))
    write_bytes(json_beside(out), (strict_json(values) + "\n").encode())
    console.result(values, _summary(values))


def _summary(values: dict[str, Any]) -> str:
    low, high = values["negative_interval"]
    parts = [f"{values['rows']:,} reviews, {values['negative_share']:.1%} negative ({low:.1%} to {high:.1%})"]
    for side in ("negative", "positive"):
        rows = [[row["phrase"], row["rows"], row["negative_share"]] for row in values["phrases"][side][:_SHOWN]]
        if rows:
            parts.append(table([f"{side} phrases", "reviews", "negative share"], rows))
    if values["rising"]:
        rows = [[row["phrase"], row["rows_recent"], row["z"]] for row in values["rising"][:_SHOWN]]
        parts.append(table(["rising phrases", "reviews in the last period", "z"], rows))
    if values["groups"]:
        rows = [[row["group"], row["rows"], row["negative_share"], row["low"]] for row in values["groups"][:_SHOWN]]
        parts.append(table([f"worst by {values['by']}", "reviews", "negative share", "at least"], rows))
    parts.append(
        f"{len(values['label_errors']):,} suspected label errors, {len(values['near_duplicates']):,} clusters of "
        f"near-duplicates\n{values['report']}"
    )
    return "\n\n".join(parts)


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "nothing was written; run the same command again")
