"""How good word vectors are: word similarities (WordSim-353 and files like it) and analogies (questions-words)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tenor.embedding.vectors import Vectors
from tenor.errors import UsageError
from tenor.store.trusted import read_bytes

MOST_BYTES = 64 << 20
BATCH = 512  # analogies that are answered together
SIMILARITIES, ANALOGIES = "similarities", "analogies"
_SHAPES = {SIMILARITIES: "two words and a number", ANALOGIES: "four words"}


@dataclass(frozen=True)
class Questions:
    """The content of a file of questions.

    Attributes:
        kind: SIMILARITIES or ANALOGIES.
        words: The words of each question: two, or four.
        scores: How similar people find the two words of each question; empty for analogies.
    """

    kind: str
    words: list[list[str]]
    scores: list[float]


def score_file(vectors: Vectors, path: Path) -> dict[str, Any]:
    """Score the vectors on a file of questions: `score` of what `read_questions` finds in it."""
    return score(vectors, read_questions(path))


def score(vectors: Vectors, questions: Questions) -> dict[str, Any]:
    """Score the vectors.

    Returns:
        `kind`, `questions` (how many have vectors for all words), `left_out`, and `spearman` or `accuracy`.
    """
    return (_similarities if questions.kind == SIMILARITIES else _analogies)(vectors, questions)


def read_questions(path: Path) -> Questions:
    """Read a file of similarities or analogies.

    Args:
        path: Lines of two words and a number (similarities), or of four words (analogies: the fourth is the answer),
            with spaces, tabs or commas between them. A first line that fits neither may name the columns. Lines that
            start with `#` or `:` are comments and headings.

    Raises:
        UsageError: The file cannot be read, or has neither kind of question.
    """
    lines = [(number, words, _kind_of(words)) for number, words in _lines(path)]
    kinds = [kind for _, _, kind in lines[:2]]
    if len(kinds) == 2 and (not kinds[0] or kinds == [ANALOGIES, SIMILARITIES]):
        del lines[0]  # the names of the columns
    if not lines or (len(lines) == 1 and not lines[0][2]):
        what = "has neither two words and a number nor four words on each line"
        raise UsageError(what, where=path, remedy="give a file such as wordsim353.tsv or questions-words.txt")
    first, _, kind = lines[0]
    for number, _, found in lines:
        if not found or found != kind:
            wanted = f"not {_SHAPES[kind]}, as line {first} is" if kind else f"neither {' nor '.join(_SHAPES.values())}"
            raise UsageError(f"line {number} is {wanted}", where=path, remedy="correct the line")
    if kind == ANALOGIES:
        return Questions(kind, [words for _, words, _ in lines], [])
    return Questions(kind, [words[:2] for _, words, _ in lines], [float(words[2]) for _, words, _ in lines])


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        text = read_bytes(path, MOST_BYTES, UsageError).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=path, remedy="check --evaluate") from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=path, remedy="convert it to UTF-8") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and line[0] not in "#:":
            yield number, line.replace(",", " ").split()


def _kind_of(words: list[str]) -> str:
    """The kind of question on a line, or "" for none."""
    if len(words) == 4:
        return ANALOGIES
    try:
        return SIMILARITIES if len(words) == 3 and math.isfinite(float(words[2])) else ""
    except ValueError:
        return ""


def _similarities(vectors: Vectors, questions: Questions) -> dict[str, Any]:
    ours, theirs = [], []
    for words, value in zip(questions.words, questions.scores, strict=True):
        a, b = (vectors.place(word) for word in words)
        if a is not None and b is not None:
            ours.append(float(vectors.directions[a] @ vectors.directions[b]))
            theirs.append(value)
    known = len(ours)
    figures = {"kind": SIMILARITIES, "questions": known, "left_out": len(questions.words) - known}
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


def _analogies(vectors: Vectors, questions: Questions) -> dict[str, Any]:
    """`a b c d`: is d the word nearest to b - a + c? Words of the question do not count as answers."""
    places = [[vectors.places.get(word.lower(), -1) for word in words] for words in questions.words]
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
    figures = {"kind": ANALOGIES, "questions": len(asked), "left_out": len(places) - len(asked)}
    return {**figures, "accuracy": right / len(asked) if len(asked) else None}
