"""From what the caller names to pieces of work: files recognised, large plain ones cut into ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenor.corpus import delimited, jsonlines
from tenor.corpus.columns import Columns, Wanted, choose
from tenor.corpus.formats import KNOWN, Kind, compression_of, format_of
from tenor.corpus.streams import SNIFF, open_raw, open_unpacked
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


def find_sources(inputs: Sequence[str | Path], wanted: Wanted) -> list[Source]:
    """Every input file, in the order given."""
    return [inspect(str(path), wanted) for path in inputs]


def inspect(path: str, wanted: Wanted) -> Source:
    """Look at a file's name and first bytes; CorpusError when it cannot be read as reviews."""
    kind, start = recognise(path)
    size = Path(path).stat().st_size
    if kind.format == "text":
        raise CorpusError(
            "is of no known format", where=path, remedy=f"known are {KNOWN}; the name's ending or the content tells"
        )
    if kind.format in DELIMITERS:
        delimiter = DELIMITERS[kind.format]
        with open_unpacked(path, kind.compression) as stream:
            header, body = delimited.read_header(stream, delimiter, path)
        return Source(path, size, kind, choose(header, wanted, path), tuple(header), body)
    if kind.format == "json":
        return Source(path, size, kind, choose(json_fields(start), wanted, path))
    return Source(path, size, kind, None)


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
