"""Cut a file into pieces that several workers predict or score."""

from __future__ import annotations

from collections.abc import Sequence

from tenor.corpus.files.source import Source
from tenor.corpus.formats.registry import format_named
from tenor.corpus.pieces import Piece, plan
from tenor.progress import Progress

# A model takes about as long for a megabyte of reviews as a worker takes to start.
SMALLEST = 1 << 20


def cut_into_pieces(sources: Sequence[Source], workers: int, progress: Progress, *, asked: bool = True) -> list[Piece]:
    """Cut the sources into pieces that do not depend on the number of workers, so that results do not either.

    Args:
        sources: The files.
        workers: How many workers there are.
        progress: Gets a warning if there are fewer pieces than workers, because some workers have nothing to do.
        asked: Whether the user asked for this number of workers; if not, there is no warning.
    """
    pieces = plan(sources, SMALLEST)
    if asked and len(pieces) < workers:
        progress.warn(
            f"{sources[0].shown}: {_why(sources, len(pieces))}, so {len(pieces)} of {workers} workers can work"
        )
    return pieces


def _why(sources: Sequence[Source], count: int) -> str:
    read_as = "it is read as one piece" if count == 1 else f"it is read as {count} pieces"
    packed = sorted({source.kind.compression for source in sources if source.kind.compression})
    if packed:
        return f"a file packed with {' or '.join(packed)} cannot be cut; {read_as}"
    for source in sources:
        if why := format_named(source.kind.format).why_not_cut(source):
            return f"{why}; {read_as}"
    return f"a piece is at least {SMALLEST >> 20} MiB; {read_as}"
