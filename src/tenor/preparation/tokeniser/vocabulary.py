"""The vocabulary: words by falling frequency. Id 0 is padding, 1 is an unknown word, 2 is the most frequent word."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.errors import StoreError, TenorError, UsageError
from tenor.preparation.tokeniser.lookup import MAX_WORD_BYTES
from tenor.preparation.tokeniser.negation import NEGATED
from tenor.preparation.tokeniser.words import WordTable, are_words, pack
from tenor.store.atomic import write_bytes
from tenor.store.manifest import VOCABULARY_BYTES, Manifest
from tenor.store.trusted import read_json

PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
CONFIG_BYTES = 16 << 20  # limit for the config.json of a run


class Vocabulary:
    """Words and their ids: `words[i]` has the id i + 2. The length includes padding and unknown."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def __len__(self) -> int:
        return len(self.words) + FIRST_WORD

    def to_bytes(self) -> bytes:
        return (json.dumps({"format": 1, "words": self.words}, ensure_ascii=False) + "\n").encode()

    @functools.cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @functools.cached_property
    def table(self) -> WordTable:
        table = WordTable()
        table.add(*pack([word.encode() for word in self.words]))
        return table

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """The position of each word in `words`."""
        return {word: place for place, word in enumerate(self.words)}

    def look_up(self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The ids of packed words; UNKNOWN for words that are not in the vocabulary."""
        return as_ids(self.table.find(data, starts))

    def save(self, path: Path) -> None:
        write_bytes(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a vocabulary.

        Raises:
            StoreError: The file is missing, or is not a vocabulary.
        """
        try:
            words = read_json(Path(path), VOCABULARY_BYTES, StoreError)["words"]
        except FileNotFoundError as error:
            raise StoreError("vocabulary is missing", where=path, remedy="prepare the data again") from error
        except KeyError as error:
            raise StoreError("is not a vocabulary file", where=path, remedy="prepare the data again") from error
        if not isinstance(words, list) or not are_words(words) or len(set(words)) != len(words):
            raise StoreError("is not a vocabulary file", where=path, remedy="prepare the data again")
        return cls(words)


def vocabulary_of(data: Path) -> Vocabulary:
    """The vocabulary of prepared data.

    Raises:
        StoreError: The file is not a vocabulary, has another number of words than the manifest says, or has a word that
            is longer than any word of the tokeniser.
    """
    path = Path(data) / "vocab.json"
    vocabulary, size = Vocabulary.load(path), Manifest.load(Path(data)).vocab_size
    if len(vocabulary) != size:
        what = f"has {len(vocabulary):,} entries, and the manifest says {size:,}"
        raise StoreError(what, where=path, remedy="prepare the data again")
    refuse_long_words(vocabulary, StoreError, path, "prepare the data again")
    return vocabulary


def refuse_long_words(vocabulary: Vocabulary, error: type[TenorError], where: Path, remedy: str) -> None:
    """Raise an error if a word is longer than any word of the tokeniser; its n-grams could fill the memory."""
    if (longest := max(map(len, vocabulary.words), default=0)) > MAX_WORD_BYTES:
        what = f"the vocabulary has a word of {longest:,} characters, and a word has at most {MAX_WORD_BYTES} bytes"
        raise error(what, where=where, remedy=remedy)


def as_ids(found: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Indices in the word table to vocabulary ids; -1 (a word that was not found) becomes UNKNOWN."""
    ids: npt.NDArray[np.int32] = np.where(found < 0, UNKNOWN, found + FIRST_WORD).astype(np.int32)
    return ids


def borrow(name: str, tokeniser: dict[str, Any]) -> Vocabulary:
    """The vocabulary of another folder, for --vocab.

    Args:
        name: A prepared folder, a run folder or a vocab.json.
        tokeniser: The tokeniser settings of this job.

    Raises:
        UsageError: The folder does not exist, or its texts were cut into words in another way.
        StoreError: The file is not a vocabulary.
    """
    path = Path(name)
    if not path.exists():
        raise UsageError(
            "--vocab names a file or folder that does not exist",
            where=path,
            remedy="name a prepared folder, a run folder or a vocab.json",
        )
    if _tokeniser(path) not in (None, tokeniser):
        raise UsageError(
            "was prepared with another tokeniser",
            where=path,
            remedy="use the same --tokens, --clean, --stopwords, --marks and --negation",
        )
    return Vocabulary.load(path / "vocab.json" if path.is_dir() else path.resolve())


def lender_of(name: str) -> dict[str, Any] | None:
    """The tokeniser settings of the folder that --vocab names; None for a vocab.json alone, which does not say."""
    return _tokeniser(Path(name))


def has_negated_words(name: str) -> bool:
    """Whether any word of a vocab.json is a negated one; False if the file does not exist."""
    return Path(name).exists() and any(word.startswith(NEGATED) for word in Vocabulary.load(Path(name)).words)


def _tokeniser(path: Path) -> dict[str, Any] | None:
    """The tokeniser settings of a prepared folder or a run; None for a vocab.json alone."""
    if (path / "manifest.json").exists():
        return Manifest.load(path).tokeniser
    try:
        config = read_json(path / "config.json", CONFIG_BYTES, StoreError, file_names=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    tokeniser = config.get("tokeniser")
    if tokeniser is not None and not isinstance(tokeniser, dict):
        raise StoreError("'tokeniser' is not a JSON object", where=path / "config.json", remedy="use another --vocab")
    return tokeniser
