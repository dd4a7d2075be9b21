"""`tenor predict`."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import IO, Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console


@command(example="echo 'not bad at all' | tenor predict run -")
def predict(
    console: Console,
    run: Annotated[Path, typer.Argument(help="A folder made by `tenor train`.", show_default=False)],
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="A file of reviews in any format of `prepare`, plain text with one a line, or - for standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Write the lines here instead.")] = None,
    text_column: Annotated[str | None, typer.Option("--text-column", help="Column of the text.")] = None,
) -> None:
    """Predict the sentiment of each review: label and probability, one line a review (JSON with --json or --out)."""
    import tenor
    from tenor.corpus.texts import read_texts

    model = tenor.load(run)
    with _writing(out) as file:
        for texts in read_texts(source, text_column):
            for prediction in model.predict(texts):
                as_json = console.json or out is not None
                line = (
                    json.dumps(prediction.as_dict()) if as_json else f"{prediction.label}\t{prediction.probability:.4f}"
                )
                print(line, file=file)
            file.flush()


def _writing(out: Path | None) -> contextlib.AbstractContextManager[IO[str]]:
    """Standard output, or a file that appears only once it is whole."""
    if out is None:
        return contextlib.nullcontext(sys.stdout)
    from tenor.store.atomic import replacing

    @contextlib.contextmanager
    def whole():  # type: ignore[no-untyped-def]
        with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file

    return whole()
