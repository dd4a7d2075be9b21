"""`tenor serve`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import MissingExtra
from tenor.serving.settings import ServeSettings


@command(example="tenor serve run --port 8000", settings=ServeSettings)
def serve(
    console: Console,
    run: Annotated[
        Path,
        typer.Argument(
            help="Run folder made by `tenor train`, or a link to one. If it changes, the new model is loaded.",
            metavar="RUN",
            show_default=False,
        ),
    ],
    settings: ServeSettings,
) -> None:
    """Serve a model over HTTP: POST /predict, a page at /, /healthz, /readyz, /metrics and /openapi.json.

    With --json, one JSON object with the address is printed once requests are accepted. SIGTERM stops the service after
    it has answered what it has accepted.
    """
    try:
        from tenor.serving.server import serve as run_service
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "tenor":
            raise
        raise MissingExtra("tenor serve", "serve") from None
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    run_service(run, settings, lambda address: console.result({"address": address}, f"{address} (Ctrl+C to stop)"))
