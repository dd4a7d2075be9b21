"""The vocabulary: words by falling frequency. Id 0 is padding, 1 an unknown word, 2 the most frequent word."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.errors import StoreError, UsageError
from tenor.preparation.words import WordTable, pack
from tenor.store.atomic import replacing
from tenor.store.manifest import Manifest

PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2


class Vocabulary:
    """`words[i]` has the id i + 2; the length counts padding and unknown too."""

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

    def look_up(self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The ids of packed words, UNKNOWN for those that are not here."""
        return as_ids(self.table.find(data, starts))

    def save(self, path: Path) -> None:
        with replacing(Path(path)) as temporary:
            temporary.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        try:
            words = json.loads(Path(path).read_bytes())["words"]
        except FileNotFoundError as error:
            raise StoreError("vocabulary is missing", where=path, remedy="prepare the data again") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError("is no vocabulary", where=path, remedy="prepare the data again") from error
        if not isinstance(words, list) or not set(map(type, words)) <= {str} or len(set(words)) != len(words):
            raise StoreError("is no vocabulary", where=path, remedy="prepare the data again")
        return cls(words)


def as_ids(found: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Places in the word table to vocabulary ids: a word that was not found becomes UNKNOWN."""
    ids: npt.NDArray[np.int32] = np.where(found < 0, UNKNOWN, found + FIRST_WORD).astype(np.int32)
    return ids


def borrow(name: str, tokeniser: dict[str, Any]) -> Vocabulary:
    """Another folder's vocabulary; UsageError when its texts were cut into words another way."""
    path = Path(name)
    if not path.exists():
        raise UsageError(
            "--vocab names nothing that is there", where=path, remedy="name a prepared folder, a run, or a vocab.json"
        )
    if _tokeniser(path) not in (None, tokeniser):
        raise UsageError(
            "was prepared with another tokeniser", where=path, remedy="use the same --clean, --stopwords and --marks"
        )
    return Vocabulary.load(path / "vocab.json" if path.is_dir() else path)


def _tokeniser(path: Path) -> dict[str, Any] | None:
    """How a prepared folder or a run cuts texts into words; a vocabulary alone does not say."""
    if (path / "manifest.json").exists():
        return Manifest.load(path).tokeniser
    config = path / "config.json"
    if not config.exists():
        return None
    try:
        tokeniser: dict[str, Any] | None = json.loads(config.read_bytes()).get("tokeniser")
    except (ValueError, AttributeError) as error:
        raise StoreError("is damaged", where=config, remedy="name another vocabulary") from error
    return tokeniser
