"""How good word vectors are: word similarities (WordSim-353 and files like it) and analogies (questions-words)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tenor.embedding.vectors import Vectors
from tenor.errors import UsageError
from tenor.store.trusted import read_bytes

MOST_BYTES = 64 << 20
BATCH = 512  # analogies that are answered together


def score_file(vectors: Vectors, path: Path) -> dict[str, Any]:
    """Score the vectors on a file of questions.

    Args:
        vectors: The word vectors.
        path: Lines of two words and a number (similarities), or of four words (analogies: the fourth is the answer);
            lines that start with `#` or `:` are comments and headings.

    Returns:
        `kind`, `questions` (how many have vectors for all words), `left_out`, and `spearman` or `accuracy`.

    Raises:
        UsageError: The file cannot be read, or holds neither kind of question.
    """
    lines = list(_lines(path))
    widths = {len(words) for _, words in lines}
    if widths == {3}:
        return _similarities(vectors, path, lines)
    if widths == {4}:
        return _analogies(vectors, lines)
    what = "has neither two words and a number nor four words on each line"
    raise UsageError(what, where=path, remedy="give a file such as wordsim353.tsv or questions-words.txt")


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        text = read_bytes(path, MOST_BYTES, UsageError).decode("utf-8")
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=path, remedy="check --evaluate") from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=path, remedy="convert it to UTF-8") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and line[0] not in "#:":
            yield number, line.replace(",", " ").split()


def _similarities(vectors: Vectors, path: Path, lines: list[tuple[int, list[str]]]) -> dict[str, Any]:
    ours, theirs = [], []
    for number, (first, second, score) in lines:
        try:
            value = float(score)
        except ValueError as error:
            what = f"line {number}: {score!r} is not a number"
            raise UsageError(what, where=path, remedy="correct the line") from error
        a, b = (vectors.places.get(word, vectors.places.get(word.lower())) for word in (first, second))
        if a is not None and b is not None:
            ours.append(float(vectors.directions[a] @ vectors.directions[b]))
            theirs.append(value)
    known = len(ours)
    figures = {"kind": "similarities", "questions": known, "left_out": len(lines) - known}
    return {**figures, "spearman": spearman(np.array(ours), np.array(theirs)) if known > 1 else None}


def spearman(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    """The correlation of the ranks, equal values sharing the mean of their ranks."""
    ranks = [_ranks(first), _ranks(second)]
    deviations = [rank - rank.mean() for rank in ranks]
    scale = float(np.sqrt((deviations[0] ** 2).sum() * (deviations[1] ** 2).sum()))
    return float(deviations[0] @ deviations[1]) / scale if scale else 0.0


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2.0)[inverse]


def _analogies(vectors: Vectors, lines: list[tuple[int, list[str]]]) -> dict[str, Any]:
    """`a b c d`: is d the word nearest to b - a + c? Words of the question do not count as answers."""
    places = [[vectors.places.get(word.lower(), -1) for word in words] for _, words in lines]
    asked = np.array([row for row in places if min(row) >= 0], np.int64).reshape(-1, 4)
    right = 0
    for start in range(0, len(asked), BATCH):
        a, b, c, d = asked[start : start + BATCH].T
        wanted = vectors.directions[b] - vectors.directions[a] + vectors.directions[c]
        cosines = wanted @ vectors.directions.T
        rows = np.arange(len(d))
        for word in (a, b, c):
            cosines[rows, word] = -np.inf
        right += int((cosines.argmax(axis=1) == d).sum())
    figures = {"kind": "analogies", "questions": len(asked), "left_out": len(lines) - len(asked)}
    return {**figures, "accuracy": right / len(asked) if len(asked) else None}
