"""Word vectors of other programs: word2vec's text and binary formats, and fastText's `.vec`, which is the text format.

A file may come from a stranger: what its header promises is compared with its size before memory is taken.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from tenor.corpus.files.limits import largest_unpacked
from tenor.embedding.settings import MAX_DIM
from tenor.embedding.vectors import Vectors
from tenor.errors import UsageError
from tenor.store.atomic import writing
from tenor.store.trusted import open_regular

FORMATS = ("word2vec", "word2vec-binary", "fasttext")
MOST_BYTES = 16 << 30  # of a file, unpacked
MOST_WORDS = 1 << 26
MAX_WORD_BYTES = 4096
READ_BYTES = 1 << 20
_DAMAGE = (OSError, EOFError, zlib.error)

Floats = npt.NDArray[np.float32]


def write_file(path: Path, vectors: Vectors, kind: str) -> None:
    """Write the vectors as `kind`, one of FORMATS."""
    head = f"{len(vectors.words)} {vectors.matrix.shape[1]}\n".encode()
    with writing(path) as file:
        file.write(head)
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            if kind == "word2vec-binary":
                file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")
            else:
                numbers = " ".join(np.format_float_positional(value, trim="-") for value in row)
                end = " \n" if kind == "fasttext" else "\n"  # fastText ends its lines with a space
                file.write(f"{word} {numbers}{end}".encode())


def read_file(path: Path, only: Container[str] | None = None) -> Vectors:
    """Read word vectors in any of FORMATS; the file may be gz-compressed. Which format it is, the content says.

    Args:
        path: The file.
        only: Keep only these words; None keeps all. The whole file is read and checked in either case.

    Raises:
        UsageError: The file is missing, damaged, too large or something else.
    """
    try:
        with open_regular(path.resolve(), UsageError) as handle, os.fdopen(os.dup(handle), "rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = cast(BinaryIO, gzip.GzipFile(fileobj=raw) if is_packed else raw)
            size = os.fstat(handle).st_size
            if is_packed:
                size = min(MOST_BYTES, largest_unpacked(size))
                file = cast(BinaryIO, io.BufferedReader(_Limited(file, size)))
            return _read(file, path, size, only)
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=path, remedy="check the name") from error
    except _DAMAGE as error:
        raise UsageError(f"cannot be read: {error}", where=path, remedy="fetch the file again") from error


class _Limited(io.RawIOBase):
    """Unpacked bytes, up to a limit: a small file may unpack to more than any disk holds."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self.file, self.left = file, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read(min(len(buffer), self.left + 1))
        self.left -= len(data)
        if self.left < 0:
            raise OSError("it unpacks to far more than its size")
        buffer[: len(data)] = data
        return len(data)


def _read(file: BinaryIO, path: Path, size: int, only: Container[str] | None) -> Vectors:
    first = file.readline(MAX_WORD_BYTES + 64 * MAX_DIM)
    words = first.split()
    if len(words) == 2 and all(word.isdigit() and len(word) < 19 for word in words):
        count, dim = int(words[0]), int(words[1])
        if not 0 < dim <= MAX_DIM or not 0 < count <= MOST_WORDS or 2 * count * dim > size:
            what = f"its header promises {count:,} words of {dim:,} numbers, which its {size:,} bytes cannot hold"
            raise UsageError(what, where=path, remedy="fetch the file again")
        start = file.read(MAX_WORD_BYTES + 64 * dim)  # the first line, if the file is text
        reader = _text_rows if _is_text(start, dim) else _binary_rows
        rows = reader(start, file, dim, path, 2)
    else:
        count, dim = 0, len(words) - 1
        if not 0 < dim <= MAX_DIM:
            raise UsageError("is not a file of word vectors", where=path, remedy="give word2vec or fastText vectors")
        rows = _text_rows(first, file, dim, path, 1)
    found: dict[str, None] = {}
    numbers, seen = bytearray(), 0  # one piece of memory: an array per row would take twice as much
    for word, row in rows:
        seen += 1
        if seen > (count or MOST_WORDS):
            raise UsageError("has more words than its header says", where=path, remedy="fetch the file again")
        if not np.isfinite(row).all():
            what = f"the vector of word {seen:,} has numbers that are not finite"
            raise UsageError(what, where=path, remedy="train or fetch the vectors again")
        if word not in found and (only is None or word in only):  # some programs write a word twice
            found[word] = None
            numbers += row.tobytes()
    if seen < count:
        what = f"has {seen:,} words, its header says {count:,}"
        raise UsageError(what, where=path, remedy="fetch the file again")
    return Vectors(tuple(found), np.frombuffer(numbers, np.float32).reshape(-1, dim))


def _is_text(start: bytes, dim: int) -> bool:
    """Whether the first row reads as a word and `dim` numbers."""
    line = start.partition(b"\n")[0].split()
    if len(line) != dim + 1:
        return False
    try:
        [float(value) for value in line[1:]]
    except ValueError:
        return False
    return True


def _text_rows(start: bytes, file: BinaryIO, dim: int, path: Path, number: int) -> Iterator[tuple[str, Floats]]:
    head, last = start.split(b"\n"), b""
    last = head.pop()

    def lines() -> Iterator[bytes]:
        yield from head
        limit = MAX_WORD_BYTES + 64 * dim
        yield last + file.readline(limit)
        while line := file.readline(limit):
            yield line

    for place, line in enumerate(lines(), start=number):
        if not line.strip():
            continue
        try:
            word, *values = line.decode("utf-8").rstrip().split(" ")
            row = np.array(values, np.float32)
        except ValueError as error:
            what = f"line {place} is not a word and {dim} numbers"
            raise UsageError(what, where=path, remedy="correct the line") from error
        if len(row) != dim or not word:
            what = f"line {place} has {len(row)} numbers, not {dim}"
            raise UsageError(what, where=path, remedy="correct the line, or fetch the file again")
        yield word, row


def _binary_rows(start: bytes, file: BinaryIO, dim: int, path: Path, number: int) -> Iterator[tuple[str, Floats]]:
    held, at = start, 0
    while True:
        if len(held) - at < MAX_WORD_BYTES + 4 * dim:
            held, at = held[at:] + file.read(READ_BYTES), 0
        while held[at : at + 1] == b"\n":
            at += 1
        if at == len(held):
            return
        space = held.find(b" ", at, at + MAX_WORD_BYTES)
        if space < 0 or len(held) < space + 1 + 4 * dim:
            raise UsageError("ends within a word's vector", where=path, remedy="fetch the file again")
        try:
            word = held[at:space].decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError("holds a word that is not UTF-8", where=path, remedy="fetch the file again") from error
        yield word, np.frombuffer(held, "<f4", dim, space + 1).astype(np.float32)
        at = space + 1 + 4 * dim
