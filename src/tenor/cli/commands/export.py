"""`tenor export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console


@command(example="tenor export vectors --format word2vec --out vectors.txt")
def export(
    console: Console,
    vectors: Annotated[Path, typer.Argument(help="A folder made by `tenor embed`.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    format_name: Annotated[
        str, typer.Option("--format", help="One of: word2vec, word2vec-binary, fasttext.")
    ] = "word2vec",
) -> None:
    """Write word vectors in a format that other programs read."""
    import tenor
    from tenor.embedding.exchange import FORMATS, write_file
    from tenor.errors import UsageError
    from tenor.store.atomic import check_target

    if format_name not in FORMATS:
        raise UsageError(f"--format does not know {format_name!r}", remedy=f"choose one of {', '.join(FORMATS)}")
    table = tenor.load_vectors(vectors)
    check_target(out)
    write_file(out, table, format_name)
    result = {"words": len(table.words), "dim": int(table.matrix.shape[1]), "format": format_name, "out": str(out)}
    console.result(result, f"{len(table.words):,} words of {table.matrix.shape[1]} numbers: {out}")
