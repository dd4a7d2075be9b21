"""Shares of negative reviews with Wilson's intervals: of all rows, by group and over time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tenor.insights.row_store import RowStore

Z = 1.959963984540054  # 95 %
MOST_GROUPS = 1000  # that a result lists


def wilson(count: float, rows: float) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927): it stays within 0 and 1, and holds for few rows too.

    >>> [round(end, 4) for end in wilson(1, 10)]
    [0.0179, 0.4042]
    """
    if rows <= 0:
        return 0.0, 1.0
    share, square = count / rows, Z * Z / rows
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / rows + square / (4 * rows)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(count: int, rows: int) -> dict[str, Any]:
    """A share with its interval, for the result."""
    low, high = wilson(count, rows)
    return {"rows": rows, "negative_share": count / rows if rows else None, "low": low, "high": high}


def over_time(is_negative: NDArray[np.bool_], periods: NDArray[np.int32], names: list[str]) -> list[dict[str, Any]]:
    """The share of each period, in order."""
    dated = periods >= 0
    rows = np.bincount(periods[dated], minlength=len(names))
    negative = np.bincount(periods[dated & is_negative], minlength=len(names))
    return [{"period": name, **share(int(negative[i]), int(rows[i]))} for i, name in enumerate(names)]


class GroupCounts:
    """Rows and negative rows of each group, 24 bytes per group; the names of most groups are never kept."""

    def __init__(self) -> None:
        self.keys = np.empty(0, np.uint64)
        self.figures = np.empty((0, 3), np.int64)  # rows, negative rows, the first row
        self.without = 0  # rows without a group

    def add(self, groups: pa.Array, is_negative: NDArray[np.bool_], first: int) -> None:
        """Count rows; `first` is the number of the first one."""
        encoded = groups.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        codes = encoded.indices.fill_null(-1).to_numpy()
        known = (codes >= 0) & np.array([bool(name) for name in names] + [False])[codes]
        self.without += int((~known).sum())
        rows = np.flatnonzero(known)
        count = np.bincount(codes[rows], minlength=len(names))
        negative = np.bincount(codes[rows[is_negative[rows]]], minlength=len(names))
        firsts = np.full(len(names), np.iinfo(np.int64).max)
        np.minimum.at(firsts, codes[rows], rows + first)
        used = np.flatnonzero(count)
        keys = np.array([key_of(names[i]) for i in used], np.uint64)
        self._merge(keys, np.stack([count[used], negative[used], firsts[used]], axis=1))

    def _merge(self, keys: NDArray[np.uint64], figures: NDArray[np.int64]) -> None:
        every, place = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        merged = np.zeros((len(every), 3), np.int64)
        merged[:, 2] = np.iinfo(np.int64).max
        for some, at in ((self.figures, place[: len(self.keys)]), (figures, place[len(self.keys) :])):
            np.add.at(merged[:, 0], at, some[:, 0])
            np.add.at(merged[:, 1], at, some[:, 1])
            np.minimum.at(merged[:, 2], at, some[:, 2])
        self.keys, self.figures = every, merged


def key_of(name: str) -> int:
    """A hash of a group's name that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def by_group(rows: RowStore, most: int = MOST_GROUPS) -> tuple[list[dict[str, Any]], int, int]:
    """(the worst groups first, number of groups, rows without a group).

    Groups are sorted by the lower end of their interval, so that a group of one bad review is not the worst one.
    """
    counts = GroupCounts()
    for some, names in _batched(rows):
        counts.add(names, rows.is_negative[some], some.start)
    low = np.array([wilson(negative, total)[0] for total, negative, _ in counts.figures.tolist()])
    order = np.argsort(-low, kind="stable")[:most]
    names = _names(rows, counts.figures[order, 2])
    listed = []
    for place in order:
        total, negative, first = counts.figures[place].tolist()
        listed.append({"group": names[first], **share(negative, total)})
    return listed, len(counts.keys), counts.without


def _batched(rows: RowStore, at_least: int = 1 << 17) -> Iterable[tuple[slice, pa.Array]]:
    """The groups of many rows at a time, because every merge sorts all groups."""
    held: list[tuple[slice, pa.Array]] = []
    for some, names in rows.groups():
        held.append((some, names))
        if some.stop - held[0][0].start >= at_least:
            yield slice(held[0][0].start, some.stop), pa.concat_arrays([array for _, array in held])
            held = []
    if held:
        yield slice(held[0][0].start, held[-1][0].stop), pa.concat_arrays([array for _, array in held])


def _names(rows: RowStore, wanted: NDArray[np.int64]) -> dict[int, str]:
    """The group of each of these rows."""
    found: dict[int, str] = {}
    ordered = np.sort(wanted)
    for some, names in rows.groups():
        inside = ordered[(ordered >= some.start) & (ordered < some.stop)]
        for row in inside.tolist():
            found[row] = names[row - some.start].as_py()
    return found
