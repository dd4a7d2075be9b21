"""`tenor embed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.embedding.settings import EmbedSettings


@command(example="tenor embed data --out vectors --dim 100 --epochs 3", settings=EmbedSettings)
def embed(
    console: Console,
    source: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A folder made by `tenor prepare`, or a text file.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to make for the vectors.")],
    settings: EmbedSettings,
    evaluate: Annotated[
        list[Path] | None,
        typer.Option(
            "--evaluate", help="A file of word similarities or analogies to score the vectors on; repeatable."
        ),
    ] = None,
) -> None:
    """Train word vectors on prepared reviews or plain text, with one process per core."""
    import tenor
    from tenor.embedding.questions import read_questions, score
    from tenor.world import detect

    questions = {file.name: read_questions(file) for file in evaluate or ()}  # before the training, which takes longer
    result = tenor.embed(source, out, settings, console.progress()).as_dict()
    if not detect().is_first:  # a launcher started several processes: only rank 0 prints
        return
    scores = {}
    if questions:
        vectors = tenor.load_vectors(out)
        scores = {name: score(vectors, found) for name, found in questions.items()}
        result["evaluation"] = scores
    rate = f"{result['words_per_s']:,.0f} words/s"
    human = f"{result['vocabulary']:,} words in {result['seconds']:.1f} s, {rate}, loss {result['loss']:.4f}"
    rows = [
        [name, found["kind"], found["questions"], found["left_out"], found.get("spearman", found.get("accuracy"))]
        for name, found in scores.items()
    ]
    scored = table(["file", "kind", "questions", "left out", "score"], rows) if rows else ""
    console.result(result, "\n".join(filter(None, [human, scored, f"vectors: {out}"])))
