"""From what the caller names to pieces of work: files recognised, large plain ones cut into ranges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tenor.corpus import delimited, jsonlines, parquet
from tenor.corpus.columns import Columns, Wanted, choose
from tenor.corpus.formats import KNOWN, Kind, compression_of, format_of
from tenor.corpus.inputs import expand
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
    return [inspect(path, wanted) for path in expand(inputs)]


def inspect(path: str, wanted: Wanted) -> Source:
    """Look at a file's name and first bytes; CorpusError when it cannot be read as reviews."""
    kind, start = recognise(path)
    size, changed = stamp(path)
    source = Source(path, size, kind, None, stamp=str(changed))
    if kind.format == "text":
        raise CorpusError(
            "is of no known format", where=path, remedy=f"known are {KNOWN}; the name's ending or the content tells"
        )
    if kind.format == "fasttext":
        return source
    if kind.format == "json":
        return replace(source, columns=choose(json_fields(start), wanted, path))
    with open_unpacked(path, kind.compression) as stream:
        if kind.format == "parquet":
            names, groups = parquet.inspect(stream, path)
            return replace(source, columns=choose(names, wanted, path), groups=tuple(groups))
        header, body = delimited.read_header(stream, DELIMITERS[kind.format], path)
        return replace(source, columns=choose(header, wanted, path), header=tuple(header), body=body)


def recognise(path: str) -> tuple[Kind, bytes]:
    """A file's kind and the first bytes of its content; one that tells nothing is plain text."""
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


def json_fields(start: bytes) -> list[str]:
    """The keys of the first lines that are JSON objects."""
    names: dict[str, None] = {}
    lines = start.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line in lines[:-1][:100] or lines:
        pairs = jsonlines.parse_object(line.decode("utf-8", "replace").encode())  # names matter here, not texts
        if not isinstance(pairs, str):
            names.update(dict.fromkeys(key for key, _ in pairs))
    return list(names)
