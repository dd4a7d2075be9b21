"""`tenor prepare`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import Stopped, UsageError
from tenor.preparation.settings import PrepareSettings


@command(example="tenor prepare reviews.jsonl.gz --out data", settings=PrepareSettings)
def prepare(
    console: Console,
    inputs: Annotated[list[str], typer.Argument(metavar="IN...", help="Review files, folders, globs or addresses.")],
    settings: PrepareSettings,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to make.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Verify a prepared folder instead of making one.")] = False,
) -> None:
    """Turn raw reviews into token shards, and account for every row."""
    if check:
        console.result(_verify(inputs))
        return
    if out is None:
        raise UsageError("no folder to write to", remedy="give --out DATA")
    from tenor.preparation.job import prepare as run

    signal.signal(signal.SIGTERM, _stop)
    console.result(run(inputs, out, settings, console.progress()).as_dict())


def _verify(folders: list[str]) -> dict[str, object]:
    from tenor.store.verify import verify_data

    if len(folders) != 1:
        raise UsageError("--check takes one folder", remedy="name the folder that prepare made")
    manifest = verify_data(folders[0])
    shards = [shard for split in manifest.splits.values() for shard in split.shards]
    size = sum(shard.bytes for shard in shards)
    return {"checked": folders[0], "shards": len(shards), "bytes": size, "manifest_sha256": manifest.sha256}


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "finished parts are kept: run the same command again to go on")
