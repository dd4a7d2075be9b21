"""What a format of raw reviews is: how its files are recognised, cut into pieces and read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from tenor.corpus.batch import RowBatch
from tenor.corpus.columns import ColumnChooser
from tenor.corpus.files.remote import can_seek
from tenor.corpus.files.source import Layout, Source
from tenor.corpus.scanning.blocks import BLOCK

Record = dict[str, Any]  # all columns of one row: JSON values, or those that Arrow gives
Range = tuple[int, int | None]  # start and end of a piece; None: to the end of the file


class Format:
    """One format of raw reviews.

    A new format is a subclass in a file of its own, with one line in the registry. It must have a `name`, a `title`
    and `read`; everything else has a default. docs/contributing/new-format.md shows an example.

    Attributes:
        name: The value of `--format`.
        title: The name of the format in messages.
        suffixes: Suffixes of file names, in lower case, such as `.csv`. The suffix of a compression may follow.
        inner_suffixes: Suffixes that one more, unknown suffix may follow, such as `.ft` in `reviews.ft.txt`.
        magic: The first bytes of every file of the format; they count more than the file's name. In a text format, a
            byte order mark and white space may come before them.
        is_binary: Whether files are read as they are: never converted to UTF-8, and refused if they are compressed.
        has_columns: Whether records have named columns; if not, a title column cannot be asked for.
        has_labels: Whether `read` gives labels; if not, only `predict` reads the format.
    """

    name: str
    title: str
    suffixes: tuple[str, ...] = ()
    inner_suffixes: tuple[str, ...] = ()
    magic: bytes = b""
    is_binary = False
    has_columns = True
    has_labels = True

    def looks_like(self, start: bytes) -> bool:
        """Whether content of this format may begin with `start`; asked if the name of a file says nothing."""
        return False

    def inspect(self, source: Source, start: bytes, choose: ColumnChooser) -> Layout:
        """Look at a file before it is read.

        Args:
            source: The file. `open_content(source)` gives its content.
            start: The first bytes of its content.
            choose: Takes the names of the columns and returns those to read.

        Raises:
            CorpusError: The file cannot be read as reviews.
        """
        return Layout()

    def cut(self, source: Source, size: int) -> list[Range]:
        """The ranges of a file that map tasks read, each about `size` bytes; by default one range, the whole file.

        Only `read`, `size` and `lines_before` interpret the numbers. They must not depend on the number of workers.
        """
        return [(source.body, None)]

    def why_not_cut(self, source: Source) -> str:
        """Why `cut` gives fewer pieces than `size` would allow; "" if it does not."""
        return f"a file of {self.title} cannot be cut"

    def size(self, source: Source, start: int, end: int | None) -> int:
        """About how many bytes a range has, for the progress bar."""
        return (source.size if end is None else end) - start

    def read(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[RowBatch]:
        """Read the rows of one range, in bounded memory.

        Args:
            stream: The content of the file as UTF-8, from the first byte. It can `seek` if `source.kind.is_plain`.
            source: The file, with the layout that `inspect` found. If `source.unlabelled`, a row without a rating is
                kept, with an empty rating, instead of rejected.
            start: Where the range starts.
            end: Where the range ends; None for the end of the file.
        """
        raise NotImplementedError(f"{self.name} has no labels")

    def read_texts(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[pa.Array]:
        """Read only the texts of one range. The arguments are those of `read`.

        Raises:
            BadLine: A row cannot be read. Prediction must answer for each row, so none is left out.
        """
        for batch in self.read(stream, source, start, end):
            if batch.rejects:
                first = batch.rejects[0]
                raise BadLine(first.line, first.reason, "fix or remove the line")
            yield batch.rows.column(0)

    def read_records(
        self, stream: BinaryIO, source: Source, start: int, end: int | None
    ) -> Iterator[tuple[RowBatch, list[Record]]]:
        """Read the rows of one range, each with all its columns. The arguments are those of `read`.

        By default a record is empty, because the format has no columns beside the text and the label.
        """
        for batch in self.read(stream, source, start, end):
            yield batch, [{} for _ in range(batch.rows.num_rows)]

    def lines_before(self, stream: BinaryIO, source: Source, start: int) -> int:
        """Lines of the file before the first line of the range that starts at `start`, for messages."""
        return count_newlines(stream, start)


class LineFormat(Format):
    """A text format with one record per line. A line belongs to the range in which its first byte lies."""

    def cut(self, source: Source, size: int) -> list[Range]:
        if not can_cut(source, size):
            return super().cut(source, size)
        count = -(-source.size // size)
        return list(itertools.pairwise(source.size * i // count for i in range(count + 1)))

    def why_not_cut(self, source: Source) -> str:
        return "" if source.kind.is_plain else NOT_PLAIN

    def lines_before(self, stream: BinaryIO, source: Source, start: int) -> int:
        return 1 + count_newlines(stream, start - 1)  # the range begins after the line that holds the byte before it


NOT_PLAIN = "text in another encoding than UTF-8 cannot be cut"


def can_cut(source: Source, size: int) -> bool:
    """Whether a file is larger than `size` and can be read from any position."""
    return source.kind.is_plain and source.size > size and can_seek(source.path)


def count_newlines(stream: BinaryIO, size: int) -> int:
    """The newlines among the next `size` bytes."""
    lines = 0
    while size > 0 and (data := stream.read(min(size, BLOCK))):
        lines, size = lines + data.count(b"\n"), size - len(data)
    return lines


class BadLine(Exception):
    """A line that cannot be read, counted from 1 within its piece."""

    def __init__(self, line: int, reason: str, remedy: str) -> None:
        self.line, self.reason, self.remedy = line, reason, remedy
