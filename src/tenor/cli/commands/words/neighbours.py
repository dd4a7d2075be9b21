"""`tenor neighbours`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table


@command(example="tenor neighbours vectors good bad 'king - man + woman' --count 5")
def neighbours(
    console: Console,
    vectors: Annotated[
        Path, typer.Argument(help="A folder made by `tenor embed`, or a word2vec or fastText file.", show_default=False)
    ],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORD...", help="Words, or sums of words such as 'king - man + woman'.", show_default=False
        ),
    ],
    count: Annotated[int, typer.Option("--count", help="Number of neighbours to list for each word.")] = 10,
) -> None:
    """List the words whose vectors are nearest to given words."""
    import tenor

    found = tenor.neighbours(vectors, words, count)
    columns = [[f"{word} {cosine:.3f}" for word, cosine in nearest] for nearest in found.values()]
    height = max(map(len, columns))
    rows = [
        [place + 1, *(column[place] if place < len(column) else "" for column in columns)] for place in range(height)
    ]
    console.result(
        {word: [list(pair) for pair in nearest] for word, nearest in found.items()}, table(["", *found], rows)
    )
