"""`tenor doctor`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, lines, table

if TYPE_CHECKING:
    from tenor.doctor import Diagnosis


@command(example="tenor doctor")
def doctor(console: Console) -> None:
    """Show versions, the machine, and which extras and communication back ends work here."""
    from tenor.doctor import diagnose

    found = diagnose()
    console.result(found.as_dict(), _text(found))
    if not found.ok:
        console.error(
            f"broken core packages: {', '.join(found.broken)}; reinstall with: pip install --force-reinstall tenor"
        )
        raise typer.Exit(1)


def _text(found: Diagnosis) -> str:
    versions = {name: version or "missing" for name, version in found.versions.items()}
    versions.update({name: f"broken: {reason}" for name, reason in found.broken.items()})
    machine = {**found.machine, "torch threads": found.threads.get("compute")}
    extras = [
        [name, "present" if extra["present"] else extra["install"], ", ".join(extra["missing"]) or "–"]
        for name, extra in found.extras.items()
    ]
    backends = [
        [name, "works" if backend["works"] else "no", backend["detail"]] for name, backend in found.backends.items()
    ]
    parts = [
        lines(versions),
        lines(machine),
        table(["extra", "present, or how to install it", "missing"], extras),
        table(["back end", "here", "detail"], backends),
        *(textwrap.fill(note, 100) for note in found.notes),
    ]
    return "\n\n".join(parts)
