"""`tenor prepare`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import Stopped, UsageError
from tenor.preparation.settings import PrepareSettings
from tenor.progress.lines import rate

if TYPE_CHECKING:
    from tenor.preparation.job.result import PrepareResult


@command(example="tenor prepare reviews.jsonl.gz --out data", settings=PrepareSettings)
def prepare(
    console: Console,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="IN...", help="Review files, folders, globs or URLs, or - for standard input."),
    ],
    settings: PrepareSettings,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to create for the prepared data.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Verify the prepared folder IN instead of preparing data.", metavar="")
    ] = False,
) -> None:
    """Turn raw reviews into token shards and account for every row."""
    if check:
        console.result(_verify(inputs))
        return
    if out is None:
        raise UsageError("--out is missing", remedy="give --out DATA, the folder to create")
    from tenor.preparation.job.prepare import prepare as run

    signal.signal(signal.SIGTERM, _stop)
    result = run(inputs, out, settings, console.progress())
    console.result(result.as_dict(), summary(result))


def summary(result: PrepareResult) -> str:
    """The result as text: the accounting of all rows, the splits, the time."""
    unlabelled = result.splits.get("unlabelled", {"rows": 0})["rows"]
    counts = [
        ("rows read", result.rows_read, ""),
        ("  kept", result.rows_kept, _reasons({"unlabelled": unlabelled})),
        ("  duplicates", result.duplicates, ""),
        ("  dropped", sum(result.dropped.values()), _reasons(result.dropped)),
        ("  rejected", sum(result.rejected.values()), _reasons(result.rejected)),
    ]
    width = len(f"{result.rows_read:,}")
    rows = [f"{name:<12}  {count:>{width},}  {why}".rstrip() for name, count, why in counts]
    if result.rejected:
        rows.append(f"  the rejected rows are listed in {result.out}/rejects.jsonl")
    splits = [
        [name, info["rows"], info["tokens"], *(info["classes"].get(label) for label in result.classes)]
        for name, info in result.splits.items()
    ]
    return "\n".join(
        [
            *rows,
            "",
            table(["split", "rows", "tokens", *result.classes], splits),
            "",
            f"vocabulary: {result.vocab_size:,} entries",
            f"{result.seconds:.1f} s, {rate(1e6 * result.mb_per_s, 'B')}, {result.engine} engine, "
            f"{result.workers} worker{'s' if result.workers > 1 else ''}",
            f"data: {result.out}",
        ]
    )


def _reasons(counts: dict[str, int]) -> str:
    """Such as `neutral 3, empty 1`, with the most frequent reason first."""
    found = sorted(((count, reason) for reason, count in counts.items() if count), reverse=True)
    return ", ".join(f"{reason} {count:,}" for count, reason in found)


def _verify(folders: list[str]) -> dict[str, object]:
    from tenor.store.verify import verify_data

    if len(folders) != 1:
        raise UsageError(
            f"--check takes one folder, not {len(folders)}", remedy="give one folder made by tenor prepare"
        )
    manifest = verify_data(folders[0])
    shards = [shard for split in manifest.splits.values() for shard in split.shards]
    size = sum(shard.bytes for shard in shards)
    return {"checked": folders[0], "shards": len(shards), "bytes": size, "manifest_sha256": manifest.sha256}


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "finished parts are kept; run the same command again to continue")
