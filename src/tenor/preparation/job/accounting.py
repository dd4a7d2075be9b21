"""Every row is accounted for: read = kept + duplicates + dropped + rejected."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

from tenor.corpus.labels import LabelRule
from tenor.corpus.pieces import Piece
from tenor.errors import CorpusError, StoreError, TenorError
from tenor.preparation.job.outputs import read_result
from tenor.preparation.job.reading import PieceCounts
from tenor.preparation.job.stages.dedupe import DedupeResult
from tenor.preparation.job.stages.mapping import MapResult
from tenor.preparation.job.work_folder import REJECTS, WorkFolder
from tenor.store.atomic import SURROGATES, writing

_SHOWN_RATINGS = 10
_SHOWN_REASONS = 4


@dataclass(frozen=True)
class RowCounts:
    """The accounting of a manifest."""

    read: int
    kept: int
    duplicates: int
    dropped: dict[str, int]  # by reason
    rejected: dict[str, int]  # by reason


@dataclass(frozen=True)
class RejectedRow:
    """A line of rejects.jsonl."""

    file: str
    line: int
    reason: str


def count_read(pieces: Sequence[PieceCounts]) -> int:
    """How many rows were read."""
    return sum(piece.read for piece in pieces)


def count_rejected(pieces: Sequence[PieceCounts]) -> dict[str, int]:
    """How many rows were rejected, by reason."""
    rejected: Counter[str] = Counter()
    for piece in pieces:
        rejected.update(piece.rejected)
    return dict(sorted(rejected.items()))


def account(pieces: Sequence[PieceCounts], *, duplicates: int, neutral: int, kept: int) -> RowCounts:
    """Account for every row.

    Raises:
        TenorError: The numbers do not balance.
    """
    dropped = {"neutral": neutral}
    if empty := sum(piece.empty for piece in pieces):
        dropped["empty"] = empty
    rows = RowCounts(count_read(pieces), kept, duplicates, dropped, count_rejected(pieces))
    if rows.read != kept + duplicates + sum([*rows.dropped.values(), *rows.rejected.values()]):
        raise TenorError(
            f"the accounting does not balance: {dataclasses.asdict(rows)}",
            remedy="this is a bug in Tenor: please report it with the input",
        )
    return rows


def check_rows(counts: Sequence[PieceCounts], pieces: Sequence[Piece]) -> None:
    """Fail if the input has no rows."""
    if not count_read(counts):
        where = pieces[0].source.shown if len({piece.source.shown for piece in pieces}) == 1 else None
        raise CorpusError("holds no rows", where=where, remedy="give a file with reviews in it")


def check_rejects(read: int, rejected: Mapping[str, int], limit: float, first: Callable[[], tuple[str, int]]) -> None:
    """Fail if more rows were rejected than the limit allows.

    Args:
        read: Rows read.
        rejected: Rows rejected, by reason.
        limit: The largest share of rejected rows.
        first: Gives file and line of the first rejected row, for the message.
    """
    count = sum(rejected.values())
    if count <= limit * read:
        return
    reasons = sorted(rejected, key=lambda reason: -rejected[reason])[:_SHOWN_REASONS]
    listed = ", ".join(f"{reason} {rejected[reason]:,}" for reason in reasons)
    file, line = first()
    raise CorpusError(
        f"{count:,} of {read:,} rows cannot be used ({listed}), the first in line {line}",
        where=file,
        remedy=f"fix the input, or accept the rejects with --max-rejects {passing_share(count, read)}",
    )


def passing_share(rejected: int, read: int) -> str:
    """The smallest --max-rejects of two digits that allows so many rejected rows."""
    share = Decimal(rejected) / Decimal(read)
    step = Decimal(1).scaleb(share.adjusted() - 1)
    passing = share.quantize(step, ROUND_CEILING)
    while rejected > float(passing) * read:  # the same rounding as in `check_rejects`
        passing += step
    return f"{min(passing, Decimal(1)).normalize():f}"


def check_classes(parts: Sequence[DedupeResult], rule: LabelRule, ratings: Sequence[str]) -> None:
    """Fail if the training rows have fewer than two classes."""
    counts = [sum(part.splits[0].classes[label] for part in parts) for label in range(len(rule.classes))]
    if sum(count > 0 for count in counts) >= 2:
        return
    seen = ", ".join(ratings[:_SHOWN_RATINGS]) + (", …" if len(ratings) > _SHOWN_RATINGS else "")
    present = [name for name, count in zip(rule.classes, counts, strict=True) if count]
    what = f"the training rows have only one class, {present[0]}" if present else "no training row has a class"
    raise CorpusError(
        f"{what} (ratings seen: {seen or 'none'})",
        remedy="say which ratings stand for which class with --negative and --positive, or give more data",
    )


def list_rejects(pieces: Sequence[Piece], work: WorkFolder) -> Iterator[RejectedRow]:
    """Every rejected row in the order of the input."""
    lines_before: Counter[str] = Counter()  # lines of each file's earlier pieces
    for number, piece in enumerate(pieces):
        folder = work.piece(number)
        file = piece.source.shown
        with (folder / REJECTS).open(encoding="utf-8") as lines:
            for line, reason in map(json.loads, lines):
                yield RejectedRow(file, line + lines_before[file], reason)
        lines_before[file] += read_result(folder, MapResult).counts.lines


def read_first_reject(out: Path) -> tuple[str, int]:
    """File and line of the first rejected row of a finished job."""
    path = out / REJECTS
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        raise StoreError(
            "does not list the rejected rows that the manifest counts",
            where=path,
            remedy=f"remove {out} and prepare again",
        ) from error
    return first["file"], first["line"]


def write_rejects(path: Path, pieces: Sequence[Piece], work: WorkFolder) -> None:
    """Write every rejected row as a line of JSON."""
    with writing(path) as out:
        for reject in list_rejects(pieces, work):
            line = json.dumps(dataclasses.asdict(reject), ensure_ascii=False) + "\n"
            out.write(line.encode("utf-8", SURROGATES))
