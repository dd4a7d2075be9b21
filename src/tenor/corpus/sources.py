"""From what the caller names to pieces of work: files recognised, large plain ones cut into ranges."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tenor.corpus import delimited, parquet
from tenor.corpus.columns import Columns, Wanted, choose
from tenor.corpus.fields import first_keys, more_keys
from tenor.corpus.formats import KNOWN, Kind, compression_of, format_of
from tenor.corpus.inputs import expand
from tenor.corpus.remote import is_url
from tenor.corpus.streams import SNIFF, open_raw, open_unpacked, stamp
from tenor.errors import CorpusError

DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Source:
    """A file, what it is, and how it will be read."""

    path: str
    size: int
    kind: Kind
    columns: Columns | None  # None for fastText lines
    header: tuple[str, ...] = ()
    body: int = 0  # where the first record starts
    groups: tuple[int, ...] = ()  # bytes of each row group of a Parquet file
    stamp: str = ""  # tells whether the file is still the same
    folder: str = field(default_factory=os.getcwd)  # where a relative path starts, for workers that stand elsewhere


def find_sources(inputs: Sequence[str | Path], wanted: Wanted) -> list[Source]:
    """Every input file, in the order given."""
    found = [inspect(path, wanted) for path in expand(inputs)]
    doubts = [doubt for _, doubt in found if doubt]
    if doubts and len(doubts) == len(found):
        raise doubts[0]
    return [source for source, _ in found]


def inspect(path: str, wanted: Wanted) -> tuple[Source, CorpusError | None]:
    """Look at a file's name and first bytes; CorpusError when it cannot be read as reviews.

    Beside the source comes what is wrong with it unless another file has the columns that the caller named.
    """
    kind, start = recognise(path)
    size, changed = stamp(path)
    source = Source(path, size, kind, None, stamp=str(changed))
    if kind.format == "text":
        raise CorpusError(
            "is of no known format", where=path, remedy=f"known are {KNOWN}; the name's ending or the content tells"
        )
    if kind.format == "fasttext":
        return source, None
    if kind.format == "json":
        columns, doubt = _choose_keys(path, kind, start, wanted)
        return replace(source, columns=columns), doubt
    with open_unpacked(path, kind.compression) as stream:
        if kind.format == "parquet":
            names, groups = parquet.inspect(stream, path)
            return replace(source, columns=choose(names, wanted, path), groups=tuple(groups)), None
        header, body = delimited.read_header(stream, DELIMITERS[kind.format], path)
        return replace(source, columns=choose(header, wanted, path), header=tuple(header), body=body), None


def _choose_keys(path: str, kind: Kind, start: bytes, wanted: Wanted) -> tuple[Columns, CorpusError | None]:
    """The columns of JSON lines. Lines need not be alike, so what the caller named is taken even where it is not seen.

    It is in doubt when the file has been seen whole.
    """
    with contextlib.suppress(CorpusError):
        return choose(first_keys(start), wanted, path), None
    keys, whole = more_keys(path, kind.compression)
    try:
        return choose(keys, wanted, path), None
    except CorpusError as error:
        named = [name for name in (wanted.text, wanted.rating, wanted.title) if name]
        return choose(dict.fromkeys([*keys, *named]), wanted, path), error if whole and keys else None


def recognise(path: str) -> tuple[Kind, bytes]:
    """A file's kind and the first bytes of its content; one that tells nothing is plain text."""
    _refuse_streams(path)
    with open_raw(path) as raw:
        packed = raw.read(8)
    if not packed:
        raise CorpusError("is empty", where=path, remedy="give a file with reviews in it")
    compression = compression_of(path, packed)
    with open_unpacked(path, compression) as stream:
        start = stream.read(SNIFF)
    if not start.strip():
        raise CorpusError("is empty", where=path, remedy="give a file with reviews in it")
    return Kind(format_of(path, start) or "text", compression), start


def _refuse_streams(path: str) -> None:
    """Files are opened several times, and what was read of a pipe is gone."""
    if is_url(path):
        return
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return  # opening it will tell what is wrong
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CorpusError(
            "is a pipe or device, which can be read only once", where=path, remedy="write it to a file first"
        )
