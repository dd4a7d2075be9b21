"""Standard input as an input file. It is saved first, because inputs are opened several times by several workers."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tenor.corpus.columns import Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.sources import find_sources
from tenor.errors import TenorError

Find = Callable[[Sequence[str | Path], Wanted], list[Source]]

DASH = "-"
_CHUNK = 1 << 20


@contextlib.contextmanager
def all_sources(
    inputs: Sequence[str | Path], wanted: Wanted, beside: Path, find: Find = find_sources
) -> Iterator[list[Source]]:
    """Every input file as a source; `-` is standard input.

    Standard input is saved in a hidden folder next to the path `beside`, until the sources are no longer in use. `find`
    makes the sources from names of files.
    """
    if DASH not in map(str, inputs):
        yield find(inputs, wanted)
        return
    beside.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
    try:
        saved = folder / "standard input"
        digest = _save(saved)
        names = [saved if str(name) == DASH else name for name in inputs]
        with _naming_standard_input(saved):
            sources = find(names, wanted)
        yield [_named(source, str(saved), digest) for source in sources]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _naming_standard_input(saved: Path) -> Iterator[None]:
    """Errors name standard input instead of the hidden copy, which the user does not know."""
    try:
        yield
    except TenorError as error:
        values = error.to_dict()
        if values["where"]:
            values["where"] = values["where"].replace(str(saved), saved.name, 1)
        raise TenorError.from_dict(values) from error


def _save(path: Path) -> str:
    """Write standard input to a file; returns the hash of its content."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        while data := sys.stdin.buffer.read(_CHUNK):
            digest.update(data)
            file.write(data)
    return digest.hexdigest()


def _named(source: Source, saved: str, digest: str) -> Source:
    """A source; one from standard input is named `-` and identified by its content, so that a job can be resumed."""
    if source.path != saved:
        return source
    return replace(source, name=source.shown.replace(saved, DASH, 1), stamp=digest)
