"""Input files found, recognised and inspected: from the names that the caller gives to sources that can be read."""

from __future__ import annotations

import codecs
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tenor.corpus.columns import AUTO, ColumnChooser, Wanted
from tenor.corpus.files import archives
from tenor.corpus.files.compression import compression_of
from tenor.corpus.files.inputs import expand
from tenor.corpus.files.remote import is_url
from tenor.corpus.files.source import UTF8, Kind, Source
from tenor.corpus.files.streams import first_bytes, is_empty, open_raw, open_unpacked, stamp
from tenor.corpus.formats.registry import (
    DELIMITED,
    TEXT,
    binary_format,
    format_named,
    has_known_suffix,
    known_formats,
    recognise,
)
from tenor.errors import CorpusError


def find_sources(inputs: Sequence[str | Path], wanted: Wanted) -> list[Source]:
    """Every input file with its labels, in the given order; CorpusError if one cannot be read as labelled reviews."""
    files = expand(inputs, has_known_suffix)
    found = [inspect(path, wanted, member) for path in files for member in members(path, wanted)]
    doubts = [doubt for _, doubt in found if doubt]
    if doubts and len(doubts) == len(found):
        raise doubts[0]
    return [source for source, _ in found]


def inspect(path: str, wanted: Wanted, member: str = "") -> tuple[Source, CorpusError | None]:
    """A file as a source; CorpusError if it cannot be read as labelled reviews.

    The second value is an error if the file, seen whole, lacks a column that the caller has named. The caller raises it
    unless another input file has the column. If unlabelled rows are wanted, a file without a rating column is read too.
    """
    source, start = open_source(path, wanted, member)
    found = format_named(source.kind.format)
    if not found.has_labels:
        remedy = f"give --format; the suffix or the content is recognised for {known_formats()}"
        raise CorpusError("does not have a known format", where=source.shown, remedy=remedy)
    source = replace(source, unlabelled=wanted.unlabelled)
    try:
        layout = found.inspect(source, start, ColumnChooser(wanted, source.shown))
    except CorpusError as error:
        if not wanted.unlabelled:
            raise
        choose = ColumnChooser(wanted, source.shown, with_rating=False, only_unrated=True)
        layout = replace(found.inspect(source, start, choose), doubt=error if wanted.rating else None)
    return source.laid_out(layout), layout.doubt


def members(path: str, wanted: Wanted) -> list[str]:
    """The files to read inside a zip archive; [""] for any other file."""
    if compression_of(path, _magic(path)) != "zip":
        return [""]
    with open_raw(path) as raw:
        return archives.members(raw, path, lambda name: wanted.format != AUTO or has_known_suffix(name))


def open_source(path: str, wanted: Wanted, member: str = "") -> tuple[Source, bytes]:
    """A file as a source without columns yet, and the first bytes of its content."""
    shown = f"{path}/{member}" if member else path
    kind, start = _recognise(path, wanted, member, shown)
    size, changed = stamp(path)
    if member:
        with open_raw(path) as raw:
            size = archives.packed_size(raw, path, member)
    return Source(path, size, kind, stamp=str(changed), name=shown if member else ""), start


def _recognise(path: str, wanted: Wanted, member: str, shown: str) -> tuple[Kind, bytes]:
    """A file's kind and the first bytes of its content. A file that no format recognises is plain text."""
    kind = Kind("", compression_of(path, _magic(path)), member=member)
    start = _start(path, kind, shown)
    if member and compression_of(member, start):
        raise CorpusError("is compressed inside a zip archive", where=shown, remedy="unpack the archive first")
    binary = binary_format(start)
    if binary and wanted.format in (AUTO, binary.name):
        if kind.compression:
            remedy = f"unpack it first: {binary.title} is not read from the first byte to the last"
            raise CorpusError(f"is {binary.title} compressed as {kind.compression}", where=shown, remedy=remedy)
        return Kind(binary.name, ""), start
    if wanted.encoding != UTF8:
        kind = replace(kind, encoding=wanted.encoding)
        start = _start(path, kind, shown)
    elif start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CorpusError("starts like UTF-16 text", where=shown, remedy="give --encoding utf-16")
    if wanted.format != AUTO:
        return replace(kind, format=wanted.format), start
    found = recognise(member or path, start) or (TEXT if wanted.delimiter == AUTO else DELIMITED)
    return replace(kind, format=found), start


def _magic(path: str) -> bytes:
    """The first bytes of the file, which tell its compression."""
    _refuse_streams(path)
    with open_raw(path) as raw:
        start = raw.read(8)
    if not start:
        raise is_empty(path)
    return start


def _start(path: str, kind: Kind, shown: str) -> bytes:
    with open_unpacked(path, kind) as stream:
        return first_bytes(stream, shown)


def _refuse_streams(path: str) -> None:
    """Refuse pipes and devices: files are opened several times, but a pipe can be read only once."""
    if is_url(path):
        return
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return  # opening the file reports the error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CorpusError(
            "is a pipe or device, which can be read only once", where=path, remedy="write its content to a file first"
        )
