"""The words to learn from, as blocks of word numbers: prepared data, or plain text that is read once.

Prepared data is read in place. Plain text is tokenised once into a temporary file of four bytes per word. That file has
no name, so nothing of it is left however the process ends.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.files.compression import compression_of
from tenor.corpus.files.source import Kind
from tenor.corpus.files.streams import SNIFF, open_raw, open_unpacked
from tenor.embedding.kernels.windows import BREAK
from tenor.errors import CorpusError, UsageError
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, UNKNOWN, vocabulary_of
from tenor.preparation.tokeniser.words import unpack
from tenor.progress import SILENT, Progress
from tenor.store.manifest import UNLABELLED, Manifest
from tenor.store.reader import Split, open_split
from tenor.store.verify import verify_data

Numbers = npt.NDArray[np.int32]

BLOCK_WORDS = 1 << 16  # words that a worker trains on between two looks at whether to stop
READ_BYTES = 1 << 20  # of text that are tokenised together
MAX_WORD_BYTES = 1 << 20  # a longer stretch without white space is not text
MAX_WORDS = 1 << 27  # distinct words
LEFT_OUT = -2  # in place of a word that is not in the vocabulary


class Nameless:
    """Numbers in a temporary file without a name, which processes read through its handle, each wherever it likes."""

    def __init__(self, handle: int | None = None) -> None:
        own = tempfile.TemporaryFile(prefix="tenor-words-") if handle is None else None  # noqa: SIM115
        self._file = own or os.fdopen(cast(int, handle), "rb")

    @property
    def handle(self) -> int:
        return self._file.fileno()

    def append(self, numbers: Numbers) -> None:
        self._file.write(numbers.tobytes())
        self._file.flush()

    def read(self, start: int, count: int) -> Numbers:
        return np.frombuffer(os.pread(self.handle, 4 * count, 4 * start), np.int32)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class TextWords:
    """The vocabulary of a text, most frequent words first."""

    words: Sequence[str]
    counts: npt.NDArray[np.int64]  # how often each occurs
    total: int  # words of the text, those outside the vocabulary included

    @property
    def sha256(self) -> str:
        """Tells whether two runs learn from the same text."""
        total = hashlib.sha256(json.dumps(list(self.words)).encode())
        total.update(self.counts.tobytes())
        return total.hexdigest()


class Blocks(Protocol):
    """A text in blocks of word numbers (places in the vocabulary), BREAK between its parts."""

    @property
    def num_blocks(self) -> int: ...

    def block(self, number: int) -> Numbers: ...

    def describe(self) -> dict[str, Any]:
        """JSON from which `open_blocks` makes the same blocks in another process."""

    def handles(self) -> tuple[int, ...]:
        """Open files that such a process must inherit."""

    def close(self) -> None: ...


def read_words(path: Path, min_count: int, max_words: int, progress: Progress = SILENT) -> tuple[TextWords, Blocks]:
    """Count the words of prepared data or of a text file.

    Args:
        path: A folder made by `tenor prepare`, or a text file, plain or compressed.
        min_count: Words that occur less often are left out.
        max_words: The most words to keep; 0 keeps all.
        progress: Where to report how much has been read.

    Raises:
        UsageError: Fewer than two words are frequent enough to learn from.
        CorpusError, StoreError: The text or the data cannot be read.
    """
    words, blocks = (_count_prepared if path.is_dir() else _count_text)(path, min_count, max_words, progress)
    if len(words.words) < 2:
        blocks.close()
        what = f"has {len(words.words)} words that occur at least {min_count} times, too few to learn from"
        raise UsageError(what, where=path, remedy="give more text, or a smaller --min-count")
    return words, blocks


def open_blocks(described: dict[str, Any]) -> Blocks:
    """The blocks that another process has described."""
    ranks = Nameless(described["ranks"])
    if described["kind"] == "prepared":
        return PreparedBlocks(Path(described["path"]), ranks, described["num_ranks"])
    return TextBlocks(Nameless(described["numbers"]), described["num_numbers"], ranks, described["num_ranks"])


def _choose(counts: npt.NDArray[np.int64], min_count: int, max_words: int) -> tuple[npt.NDArray[np.int64], Nameless]:
    """The numbers of the words to keep, most frequent first (equally frequent ones in their order), and the place of
    each word among them, LEFT_OUT for the others."""
    order = np.argsort(-counts, kind="stable")
    kept = order[counts[order] >= min_count]
    kept = kept[:max_words] if max_words else kept
    places = np.full(len(counts), LEFT_OUT, np.int32)
    places[kept] = np.arange(len(kept), dtype=np.int32)
    ranks = Nameless()
    ranks.append(places)
    return kept, ranks


class PreparedBlocks:
    """The training reviews and the unlabelled ones of prepared data, read in place. valid and test stay unseen."""

    def __init__(self, path: Path, ranks: Nameless, num_ranks: int) -> None:
        self.path, self._ranks, self._num_ranks = path, ranks, num_ranks
        self._splits = _open_splits(path)
        self._places = ranks.read(0, num_ranks)
        self._ranges = [(split, *rows) for split in self._splits for rows in _row_ranges(split.lengths)]

    @property
    def num_blocks(self) -> int:
        return len(self._ranges)

    def block(self, number: int) -> Numbers:
        split, first, last = self._ranges[number]
        tokens, lengths = split.gather(np.arange(first, last))
        numbers = np.insert(self._places[tokens], np.cumsum(lengths), BREAK)
        return cast(Numbers, numbers[numbers != LEFT_OUT])

    def describe(self) -> dict[str, Any]:
        described = {"kind": "prepared", "path": str(self.path.resolve())}
        return {**described, "ranks": self._ranks.handle, "num_ranks": self._num_ranks}

    def handles(self) -> tuple[int, ...]:
        return (self._ranks.handle,)

    def close(self) -> None:
        for split in self._splits:
            split.close()
        self._ranks.close()


def _count_prepared(path: Path, min_count: int, max_words: int, progress: Progress) -> tuple[TextWords, Blocks]:
    verify_data(path)
    vocabulary = vocabulary_of(path)
    counts = np.zeros(len(vocabulary), np.int64)
    for split in _open_splits(path):
        with split:
            for first, last in _row_ranges(split.lengths):
                counts += np.bincount(split.gather(np.arange(first, last))[0], minlength=len(counts))
    total = int(counts[UNKNOWN:].sum())
    counts[:FIRST_WORD] = 0  # neither padding nor the unknown word gets a vector
    kept, ranks = _choose(counts, min_count, max_words)
    words = [vocabulary.words[number - FIRST_WORD] for number in kept]
    return TextWords(words, counts[kept], total), PreparedBlocks(path, ranks, len(counts))


def _open_splits(path: Path) -> list[Split]:
    """The splits to learn from."""
    has_more = UNLABELLED in Manifest.load(path).splits
    return [open_split(path, name, verify=False) for name in ("train", *([UNLABELLED] if has_more else []))]


def _row_ranges(lengths: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """Rows in their order, cut into ranges of about BLOCK_WORDS words."""
    if len(lengths) == 0:
        return []
    ends = np.cumsum(lengths, dtype=np.int64)
    cuts = np.searchsorted(ends, np.arange(BLOCK_WORDS, ends[-1], BLOCK_WORDS)) + 1
    bounds = np.unique(np.concatenate([[0], cuts, [len(lengths)]])).tolist()
    return list(itertools.pairwise(bounds))


class TextBlocks:
    """Plain text as numbers of words in the order in which they first occur, in a file of four bytes per word."""

    def __init__(self, numbers: Nameless, num_numbers: int, ranks: Nameless, num_ranks: int) -> None:
        self._numbers, self._num_numbers, self._ranks, self._num_ranks = numbers, num_numbers, ranks, num_ranks
        self._places = ranks.read(0, num_ranks)

    @property
    def num_blocks(self) -> int:
        return -(-self._num_numbers // BLOCK_WORDS)

    def block(self, number: int) -> Numbers:
        start = number * BLOCK_WORDS
        numbers = self._numbers.read(start, min(BLOCK_WORDS, self._num_numbers - start))
        numbers = np.where(numbers < 0, BREAK, self._places[np.maximum(numbers, 0)])
        return cast(Numbers, numbers[numbers != LEFT_OUT])

    def describe(self) -> dict[str, Any]:
        numbers = {"numbers": self._numbers.handle, "num_numbers": self._num_numbers}
        return {"kind": "text", **numbers, "ranks": self._ranks.handle, "num_ranks": self._num_ranks}

    def handles(self) -> tuple[int, ...]:
        return self._numbers.handle, self._ranks.handle

    def close(self) -> None:
        self._numbers.close()
        self._ranks.close()


def _count_text(path: Path, min_count: int, max_words: int, progress: Progress) -> tuple[TextWords, Blocks]:
    """Tokenise as `tenor prepare` does, so that the vectors fit the words of a classifier."""
    tokeniser, numbers = Tokeniser.counting(TokeniserSettings()), Nameless()
    counts, num_numbers = np.zeros(0, np.int64), 0
    progress.start("read text", None, "B")
    try:
        for texts, size in _texts(path):
            tokens = tokeniser(texts)
            before, counts = counts, np.bincount(tokens.ids, minlength=len(tokeniser.table))
            counts[: len(before)] += before
            if len(counts) > MAX_WORDS:
                remedy = "check that it is text"
                raise CorpusError(f"has more than {MAX_WORDS:,} different words", where=path, remedy=remedy)
            block = np.insert(tokens.ids, np.cumsum(tokens.lengths)[:-1], BREAK).astype(np.int32)
            numbers.append(block)
            num_numbers += len(block)
            progress.advance(size)
    except BaseException:
        numbers.close()
        raise
    finally:
        progress.finish()
    kept, ranks = _choose(counts, min_count, max_words)
    names = unpack(*tokeniser.table.contents())
    words = TextWords([names[number].decode() for number in kept], counts[kept], int(counts.sum()))
    return words, TextBlocks(numbers, num_numbers, ranks, len(counts))


def open_text(path: Path) -> AbstractContextManager[BinaryIO]:
    """The bytes of a text file, unpacked if it is compressed.

    Raises:
        CorpusError: The file cannot be read. Damage found while reading raises it, too.
    """
    if path.exists() and not path.is_file():  # a pipe cannot be read twice, and a device may never end
        raise CorpusError("is not an ordinary file", where=path, remedy="save the text in a file first")
    with open_raw(str(path)) as raw:
        start = raw.read(SNIFF)
    return open_unpacked(str(path), Kind("text", compression_of(str(path), start)))


def _texts(path: Path) -> Iterator[tuple[pa.Array, int]]:
    """The text in stretches that end between two words: one string per line, and the number of bytes."""
    line, held = 1, b""
    with open_text(path) as stream:
        while data := stream.read(READ_BYTES):
            if b"\0" in data:
                remedy = "give plain text, or prepared data"
                raise CorpusError(f"line {line}: is not text: it holds zero bytes", where=path, remedy=remedy)
            data = held + data
            cut = max(data.rfind(b" "), data.rfind(b"\n"), data.rfind(b"\t")) + 1
            if cut == 0 and len(data) > MAX_WORD_BYTES:
                remedy = "give text with spaces between words"
                raise CorpusError(
                    f"line {line}: a word of more than {MAX_WORD_BYTES:,} bytes", where=path, remedy=remedy
                )
            held = data[cut:]
            if cut:
                yield _lines(data[:cut], path, line), cut
                line += data.count(b"\n", 0, cut)
    if held:
        yield _lines(held, path, line), len(held)


def _lines(data: bytes, path: Path, line: int) -> pa.Array:
    try:
        return pa.array(data.decode("utf-8").split("\n"), pa.large_string())
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise CorpusError(f"line {line}: invalid UTF-8", where=path, remedy="convert the text to UTF-8") from error
