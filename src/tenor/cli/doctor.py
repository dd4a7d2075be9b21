"""`tenor doctor`."""

from __future__ import annotations

from tenor.cli.command import command
from tenor.cli.console import Console


@command(example="tenor doctor")
def doctor(console: Console) -> None:
    """Show versions, threads, which extras are present and which back ends work here."""
    console.result({"tenor": "ok"})
