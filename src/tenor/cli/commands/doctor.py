"""`tenor doctor`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, lines, table
from tenor.errors import MissingExtra

if TYPE_CHECKING:
    from tenor.doctor import Diagnosis


@command(example="tenor doctor --serve")
def doctor(
    console: Console,
    serve: Annotated[
        bool, typer.Option("--serve", help="Instead, start a service on loopback and try its parts.", metavar="")
    ] = False,
) -> None:
    """Show versions, the machine, and which extras and communication back ends work here."""
    if serve:
        _check_service(console)
        return
    from tenor.doctor import diagnose

    found = diagnose()
    console.result(found.as_dict(), _text(found))
    if not found.ok:
        console.error(
            f"broken core packages: {', '.join(found.broken)}; reinstall them with: pip install --force-reinstall "
            + " ".join(found.broken)
        )
        raise typer.Exit(1)


def _check_service(console: Console) -> None:
    try:
        from tenor.serving.checkup import check_service
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "tenor":
            raise
        raise MissingExtra("tenor doctor --serve", "serve") from None
    found = check_service()
    failed = [name for name, check in found.items() if not check["works"]]
    rows = [[name, "works" if check["works"] else "no", check["detail"]] for name, check in found.items()]
    console.result({"ok": not failed, "serve": found}, table(["part of the service", "here", "detail"], rows))
    if failed:
        console.error(f"the service does not work here: {', '.join(failed)}; see the details above")
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
