"""`tenor export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import UsageError

VECTOR_FORMATS = ("word2vec", "word2vec-binary", "fasttext")


@command(example="tenor export run --format onnx --out model.onnx")
def export(
    console: Console,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|VECTORS",
            help="A run folder made by `tenor train`, or a folder made by `tenor embed`.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    format_name: Annotated[
        str, typer.Option("--format", help="onnx for a run; word2vec, word2vec-binary or fasttext for word vectors.")
    ] = "word2vec",
    int8: Annotated[
        bool, typer.Option("--int8", help="Store large tables as 8-bit integers. Only with --format onnx.", metavar="")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Prepared data on whose test rows to compare. Only with --format onnx."),
    ] = None,
) -> None:
    """Write a model or word vectors in a format that other programs read.

    An ONNX file takes token ids and gives probabilities. With --data, the command prints how far they differ from the
    model's, and what the file loses in accuracy.
    """
    if format_name == "onnx":
        _export_model(console, source, out, int8, data)
        return
    if format_name not in VECTOR_FORMATS:
        known = ", ".join(["onnx", *VECTOR_FORMATS])
        raise UsageError(f"--format does not know {format_name!r}", remedy=f"choose one of {known}")
    if int8 or data is not None:
        option = "--int8" if int8 else "--data"
        raise UsageError(f"{option} has no effect with --format {format_name}", remedy=f"omit {option}")
    import tenor
    from tenor.embedding.exchange import write_file
    from tenor.store.atomic import check_target

    table = tenor.load_vectors(source)
    check_target(out)
    write_file(out, table, format_name)
    result = {"words": len(table.words), "dim": int(table.matrix.shape[1]), "format": format_name, "out": str(out)}
    console.result(result, f"{len(table.words):,} words of {table.matrix.shape[1]} numbers: {out}")


def _export_model(console: Console, run: Path, out: Path, int8: bool, data: Path | None) -> None:
    import tenor

    result = tenor.export_model(run, out, int8=int8, data=data)
    line = f"{result.bytes / 1e6:.1f} MB: {out}"
    if result.checked_rows:
        line += (
            f"\n{result.checked_rows:,} test rows: accuracy {result.accuracy:.4f}, {result.accuracy_lost:+.4f} lost, "
            f"largest difference of a probability {result.largest_difference:.2g}"
        )
    console.result(result.as_dict(), line)
