"""`tenor export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import UsageError

if TYPE_CHECKING:
    from tenor.prediction.export import ExportResult

MODEL_FORMATS = ("onnx", "compact")
VECTOR_FORMATS = ("word2vec", "word2vec-binary", "fasttext")
_UNKNOWN_LOSS = "the accuracy that is lost was not measured"


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
        str | None,
        typer.Option(
            "--format",
            help="onnx or compact for a run; word2vec, word2vec-binary or fasttext for word vectors. Default: word2vec "
            "for word vectors; onnx for a run if OUT ends with .onnx.",
            show_default=False,
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Store large tables as 8-bit integers. Only with --format onnx.", metavar="")
    ] = False,
    ngrams: Annotated[
        int | None,
        typer.Option(
            "--ngrams",
            help="N-grams to keep; 0 keeps all. Default: 200,000 with --data, else all. Only with --format compact.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The run's prepared data. onnx: its test rows are compared. compact: its training rows say which "
            "n-grams matter, and its validation rows are compared.",
        ),
    ] = None,
) -> None:
    """Write a model or word vectors in a format that other programs read.

    An ONNX file takes token ids and gives probabilities. A compact model is one small file that `tenor predict`, `tenor
    serve` and `tenor.load` take instead of a run folder. With --data, the command prints how far the probabilities
    differ from the model's, and the accuracy that the file loses.
    """
    format_name = format_name or _format_of(source, out)
    given: dict[str, tuple[bool, tuple[str, ...]]] = {
        "--int8": (int8, ("onnx",)),
        "--ngrams": (ngrams is not None, ("compact",)),
        "--data": (data is not None, MODEL_FORMATS),
    }
    for option, (is_given, formats) in given.items():
        if is_given and format_name not in formats:
            raise UsageError(f"{option} has no effect with --format {format_name}", remedy=f"omit {option}")
    if format_name in MODEL_FORMATS:
        import tenor

        made = tenor.export_model(source, out, format=format_name, int8=int8, ngrams=ngrams, data=data)
        console.result(made.as_dict(), _describe(made, data, "test" if format_name == "onnx" else "validation"))
        return
    if format_name not in VECTOR_FORMATS:
        known = ", ".join([*MODEL_FORMATS, *VECTOR_FORMATS])
        raise UsageError(f"--format does not know {format_name!r}", remedy=f"choose one of {known}")
    import tenor
    from tenor.embedding.exchange import write_file
    from tenor.store.atomic import check_target

    table = tenor.load_vectors(source)
    check_target(out)
    write_file(out, table, format_name)
    result = {"words": len(table.words), "dim": int(table.matrix.shape[1]), "format": format_name, "out": str(out)}
    console.result(result, f"{len(table.words):,} words of {table.matrix.shape[1]} numbers: {out}")


def _format_of(source: Path, out: Path) -> str:
    """The format that fits the source, if none was given."""
    if source.is_file() or (source / "vectors.safetensors").exists():
        return "word2vec"
    if not (source / "config.json").exists():
        remedy = "give a folder made by `tenor train` or `tenor embed`"
        raise UsageError("is neither a run folder nor word vectors", where=source, remedy=remedy)
    if out.suffix.lower() == ".onnx":
        return "onnx"
    raise UsageError("is a run folder, which has two formats", where=source, remedy="add --format onnx or compact")


def _describe(result: ExportResult, data: Path | None, split: str) -> str:
    line = f"{result.bytes / 1e6:.2f} MB: {result.out}"
    if result.ngrams is not None:
        line = f"{result.ngrams:,} n-grams, {line}"
    if data is None:
        return f"{line}\n{_UNKNOWN_LOSS}; give the run's prepared data with --data DATA"
    if not result.checked_rows:
        return f"{line}\n{_UNKNOWN_LOSS}, because {data} has no {split} rows"
    return (
        f"{line}\n{result.checked_rows:,} {split} rows: accuracy {result.accuracy:.4f}, {result.accuracy_lost:+.4f} "
        f"lost, largest difference of a probability {result.largest_difference:.2g}"
    )
