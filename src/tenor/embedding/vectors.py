"""Word vectors in memory and in a folder: safetensors, the vocabulary as JSON, and a card.

The folder may come from a stranger: links, sizes, shapes and values are checked before memory is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tenor.embedding.settings import MAX_BUCKETS, MAX_CHARS, MAX_DIM
from tenor.embedding.subwords import Shape, compose, rows_of
from tenor.errors import RunError, UsageError
from tenor.models.weights import read_weights, write_weights
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.store.atomic import write_bytes
from tenor.store.strict import strict_json
from tenor.store.trusted import read_json

FORMAT = 1
KIND = "word vectors"
CONFIG, TABLE, WORDS, CARD = "config.json", "vectors.safetensors", "vocab.json", "README.md"
CONFIG_BYTES = 1 << 20
NAME, NGRAMS = "vectors", "subwords"

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Subwords:
    """Vectors of character n-grams, for words that have no vector of their own."""

    shape: Shape
    table: Floats  # (buckets, dim)


@dataclass(frozen=True)
class Vectors:
    """Word vectors in memory; `matrix[i]` belongs to `words[i]`.

    Attributes:
        words: The words.
        matrix: One vector per word, (words, dim).
        subwords: The vectors of character n-grams, from which unknown words get a vector; None if there are none.
    """

    words: Sequence[str]
    matrix: Floats  # (words, dim)
    subwords: Subwords | None = None

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """Word → row of the matrix."""
        return {word: place for place, word in enumerate(self.words)}

    @functools.cached_property
    def directions(self) -> Floats:
        """The vectors scaled to length 1; a vector of zeros stays."""
        lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
        return np.asarray(self.matrix / np.where(lengths > 0, lengths, 1), np.float32)

    def place(self, word: str) -> int | None:
        """Find the row of a word, or of its lower-case form.

        Args:
            word: The word.

        Returns:
            The row of `matrix`; None if the word has none.

        >>> tenor.load_vectors("vectors").place("The")  # doctest: +SKIP
        0
        """
        return self.places.get(word, self.places.get(word.lower()))

    def vector(self, word: str) -> Floats:
        """Return the vector of a word, made of its n-grams if the word has no vector of its own.

        Args:
            word: The word.

        Returns:
            The vector, (dim,).

        Raises:
            UsageError: There is no vector for the word.

        >>> tenor.load_vectors("vectors").vector("good").shape  # doctest: +SKIP
        (100,)
        """
        place = self.place(word)
        if place is not None:
            return np.asarray(self.matrix[place], np.float32)
        if self.subwords is not None:
            rows = rows_of([word.lower()], self.subwords.shape, 0, with_own=False)
            if len(rows.rows):
                return np.asarray(compose(self.subwords.table, rows)[0], np.float32)
        raise UsageError(f"there is no vector for {word!r}", remedy="check the spelling, or train on more text")


def save_vectors(folder: Path, vectors: Vectors, settings: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Write the folder; the configuration comes last, so that a folder that has one is whole."""
    table = {NAME: torch.from_numpy(np.ascontiguousarray(vectors.matrix))}
    subwords: dict[str, int] = {}
    if vectors.subwords is not None:
        table[NGRAMS] = torch.from_numpy(np.ascontiguousarray(vectors.subwords.table))
        subwords = asdict(vectors.subwords.shape)
    write_weights(folder / TABLE, table)
    vocabulary = Vocabulary(vectors.words)
    vocabulary.save(folder / WORDS)
    write_bytes(folder / CARD, _card(vectors, settings, result).encode())
    config = {"format": FORMAT, "kind": KIND, "dim": vectors.matrix.shape[1], "num_words": len(vectors.words)}
    config |= {"subwords": subwords}
    config |= {"vocab_sha256": vocabulary.sha256, "settings": dict(settings), "result": dict(result)}
    write_bytes(folder / CONFIG, (strict_json(config, indent=1) + "\n").encode())


def load_vectors(path: str | Path) -> Vectors:
    """Load a folder made by `tenor embed`, or a file in word2vec's text or binary format or fastText's `.vec`.

    Args:
        path: The folder or the file; text formats may be gz-compressed.

    Returns:
        The words and their vectors.

    Raises:
        RunError: The folder is missing, damaged or of another kind.
        UsageError: The file cannot be read as word vectors.

    >>> tenor.load_vectors("vectors").words[:3]  # doctest: +SKIP
    ['the', 'and', 'a']
    """
    path = Path(path)
    if path.is_dir():
        return _load_folder(path)
    from tenor.embedding.exchange import read_file

    return read_file(path)


def _load_folder(folder: Path) -> Vectors:
    try:
        config = read_json(folder / CONFIG, CONFIG_BYTES, RunError)
    except FileNotFoundError as error:
        remedy = "make it with tenor embed"
        raise RunError(f"has no {CONFIG}, so it does not hold word vectors", where=folder, remedy=remedy) from error
    dim, num_words = config.get("dim"), config.get("num_words")
    if config.get("kind") != KIND or config.get("format") != FORMAT:
        raise RunError("does not hold word vectors of this version", where=folder, remedy="train them with tenor embed")
    if type(dim) is not int or not 0 < dim <= MAX_DIM or type(num_words) is not int or num_words < 1:
        raise RunError("dim or num_words cannot be right", where=folder / CONFIG, remedy="copy the folder again")
    vocabulary = Vocabulary.load(folder / WORDS)
    if len(vocabulary.words) != num_words or vocabulary.sha256 != config.get("vocab_sha256"):
        raise RunError(f"does not belong to {CONFIG}", where=folder / WORDS, remedy="copy the folder again")
    shape = _subword_shape(folder, config.get("subwords"))
    shapes = {NAME: (num_words, dim)} | ({NGRAMS: (shape.buckets, dim)} if shape else {})
    try:
        tables = read_weights(folder / TABLE, shapes)
    except FileNotFoundError as error:
        raise RunError(f"has no {TABLE}", where=folder, remedy="copy the folder again") from error
    arrays = {name: table.to(torch.float32).numpy() for name, table in tables.items()}
    return Vectors(vocabulary.words, arrays[NAME], Subwords(shape, arrays[NGRAMS]) if shape else None)


def _subword_shape(folder: Path, saved: object) -> Shape | None:
    if not saved:
        return None
    names = ("min_chars", "max_chars", "buckets")
    values = [saved.get(name) if isinstance(saved, dict) else None for name in names]
    low, high, buckets = (value if type(value) is int else 0 for value in values)
    if not (0 < low <= high <= MAX_CHARS and 0 < buckets <= MAX_BUCKETS):
        raise RunError("subwords cannot be right", where=folder / CONFIG, remedy="copy the folder again")
    return Shape(low, high, buckets)


def _card(vectors: Vectors, settings: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    return f"""# Word vectors: {len(vectors.words):,} words of {vectors.matrix.shape[1]} numbers

Trained with tenor: {settings["model"]}, window {settings["window"]}, {settings["negative"]} noise words per window,
{settings["epochs"]} epoch(s) over {result["words"]:,} words, seed {settings["seed"]}.
Mean loss per prediction {result["loss"]:.4f}.

## Use

    import tenor
    tenor.neighbours("path/to/this/folder", ["good"])

or `tenor neighbours path/to/this/folder good`. `tenor train DATA --out RUN --embeddings path/to/this/folder` starts a
classifier from them. No file here is executed when it is loaded: the vectors are safetensors, the rest is JSON.
"""
