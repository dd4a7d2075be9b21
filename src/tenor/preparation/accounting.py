"""Every row is accounted for: read = kept + duplicates + dropped + rejected, exactly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tenor.corpus.labels import LabelRule
from tenor.corpus.pieces import Piece
from tenor.errors import CorpusError, StoreError, TenorError
from tenor.preparation import mapping
from tenor.preparation.workfolder import part_path
from tenor.store.atomic import SURROGATES, replacing

Task = dict[str, Any]


def read_and_rejected(mapped: Sequence[Task]) -> dict[str, Any]:
    """How many rows were read, and how many refused, by reason."""
    rejected: Counter[str] = Counter()
    for piece in mapped:
        rejected.update(piece["rejected"])
    return {"read": sum(piece["read"] for piece in mapped), "rejected": dict(sorted(rejected.items()))}


def account(mapped: Sequence[Task], parts: Sequence[Task], kept: int) -> dict[str, Any]:
    """The manifest's accounting; it must balance."""
    told = read_and_rejected(mapped)
    rows = {
        "read": told["read"],
        "kept": kept,
        "duplicates": sum(part["duplicates"] for part in parts),
        "dropped": {"neutral": sum(part["neutral"] for part in parts)},
        "rejected": told["rejected"],
    }
    if rows["read"] != kept + rows["duplicates"] + rows["dropped"]["neutral"] + sum(rows["rejected"].values()):
        raise TenorError(f"the accounting does not balance: {rows}", remedy="please report this with the input")
    return rows


def check_rows(mapped: Sequence[Task], pieces: Sequence[Piece]) -> None:
    """Fail when there are none."""
    if not any(piece["read"] for piece in mapped):
        where = pieces[0].source.path if len({piece.source.path for piece in pieces}) == 1 else None
        raise CorpusError("holds no rows", where=where, remedy="give a file with reviews in it")


def check_rejects(rows: Task, limit: float, first: Callable[[], Task]) -> None:
    """Fail when more rows than the limit allows were refused, naming the first of them."""
    read, rejected = rows["read"], sum(rows["rejected"].values())
    if rejected <= limit * read:
        return
    reasons: dict[str, int] = rows["rejected"]
    told = ", ".join(f"{reason} {reasons[reason]:,}" for reason in sorted(reasons, key=lambda name: -reasons[name])[:4])
    where = first()
    raise CorpusError(
        f"{rejected:,} of {read:,} rows cannot be used ({told}), the first in line {where['line']}",
        where=where["file"],
        remedy="mend the input or raise --max-rejects",
    )


def check_classes(parts: Sequence[Task], rule: LabelRule, ratings: Sequence[str]) -> None:
    """Fail when fewer than two classes are left to train on."""
    counts = [sum(part["splits"][0]["classes"][label] for part in parts) for label in range(len(rule.classes))]
    if sum(count > 0 for count in counts) >= 2:
        return
    seen = ", ".join(ratings[:10]) + (", …" if len(ratings) > 10 else "")
    present = [name for name, count in zip(rule.classes, counts, strict=True) if count]
    what = f"only one class, {present[0]}, is" if present else "no class is"
    raise CorpusError(
        f"{what} there to train on (ratings seen: {seen or 'none'})",
        remedy="say which ratings stand for which class with --negative and --positive, or give more data",
    )


def list_rejects(pieces: Sequence[Piece], work: Path) -> Iterator[dict[str, Any]]:
    """Every refused row with file, line and reason, in the order of the input."""
    before: Counter[str] = Counter()  # lines of a file's earlier pieces
    for number, piece in enumerate(pieces):
        folder = part_path(str(work), mapping.FOLDER, number)
        file = piece.source.path
        with (folder / mapping.REJECTS).open(encoding="utf-8") as lines:
            for line, reason in map(json.loads, lines):
                yield {"file": file, "line": line + before[file], "reason": reason}
        before[file] += json.loads((folder / "meta.json").read_bytes())["lines"]


def read_first_reject(out: Path) -> dict[str, Any]:
    """The first refused row of a finished folder."""
    file = out / mapping.REJECTS
    try:
        with file.open(encoding="utf-8") as lines:
            found: dict[str, Any] = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        remedy = f"remove {out} and prepare again"
        raise StoreError(
            "the refused rows that the manifest counts are not there", where=file, remedy=remedy
        ) from error
    return found


def write_rejects(path: Path, pieces: Sequence[Piece], work: Path) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", errors=SURROGATES) as out:
        for reject in list_rejects(pieces, work):
            out.write(json.dumps(reject, ensure_ascii=False) + "\n")
