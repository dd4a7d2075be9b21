"""Word vectors from elsewhere, as the first rows of the embedding: word2vec's text format, plain or gz."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError


def read_vectors(file: Path, words: Sequence[str], width: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The places among `words` of those that the file has, and their vectors. A first line `count width` is skipped."""
    place = {word: number for number, word in enumerate(words)}
    found: dict[int, NDArray[np.float32]] = {}
    number = 0
    try:
        with _open(file) as lines:
            for number, line in enumerate(lines, start=1):
                word, *values = line.rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue
                if len(values) != width:
                    remedy = f"use --embedding-dim {len(values)}" if number < 3 else "mend the line"
                    raise UsageError(f"line {number} has {len(values)} numbers, not {width}", where=file, remedy=remedy)
                if word in place:
                    found[place[word]] = np.array(values, dtype=np.float32)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot be read: {error}", where=file, remedy="check --embeddings") from error
    except UnicodeDecodeError as error:
        remedy = "convert it to word2vec's text format"
        raise UsageError(f"is no text after line {number}", where=file, remedy=remedy) from error
    except ValueError as error:
        raise UsageError(f"line {number} is no word with numbers", where=file, remedy="mend the line") from error
    if not found:
        raise UsageError("has none of the data's words", where=file, remedy="check that it is of the same language")
    matrix = np.stack(list(found.values()))
    if not np.isfinite(matrix).all():
        raise UsageError("holds numbers that are not finite", where=file, remedy="mend the file")
    return np.array(list(found)), matrix


def _open(file: Path) -> IO[str]:
    return gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")
