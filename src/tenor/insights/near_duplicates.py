"""Near-duplicates by MinHash: candidates that agree in one of several bands, verified by their exact similarity.

Two reviews are alike if the Jaccard similarity of their sets of words is high enough. A MinHash of two sets agrees with
a probability equal to their similarity (Broder 1997). With 16 bands of 6, a pair with similarity 0.8 becomes a
candidate with probability 0.99, and with similarity 0.5 with probability 0.22; the exact check removes false ones.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled
from tenor.insights.row_store import RowStore
from tenor.progress import SILENT, Progress

BANDS, BAND = 16, 6  # bands, and hashes of each
FEWEST_WORDS = 4  # different words of a review; shorter ones, such as "good product", say the same by chance
LEADERS = 32  # reviews of one candidate set that the others are compared with
COPIED_WORDS = 6  # different words of a review that counts as a copy of another one
MOST_CLUSTERS = 100_000
MOST_MEMBERS = 20  # of a cluster that are listed
SNIPPET = 300  # characters of a text that is listed

_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_U32, _U29 = np.uint64(32), np.uint64(29)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class NearDuplicates:
    """The clusters of reviews that are alike.

    Attributes:
        first: Of each row, the first row of its cluster; the row itself if it is alone.
    """

    def __init__(self, rows: RowStore, similarity: float, folder: Path, progress: Progress = SILENT) -> None:
        """Find the clusters.

        Args:
            rows: The rows.
            similarity: The smallest Jaccard similarity.
            folder: Where large arrays are kept while the clusters are found.
            progress: Shows how far the work is.
        """
        self._rows = rows
        self.first = np.arange(len(rows))
        with tempfile.TemporaryDirectory(prefix="near-", dir=folder) as name:
            words = _WordFiles(rows, Path(name))
            parents = find_clusters(words.values, words.starts, similarity, words.bands, progress)
            self.first[words.rows] = words.rows[parents]

    def copies(self) -> NDArray[np.bool_]:
        """Whether each row is a copy of an earlier one: shops show one review beside several products.

        A text of few words is no copy, because several people may write it on their own.
        """
        is_copy: NDArray[np.bool_] = self.first != np.arange(len(self.first))
        for block in self._rows.blocks("words"):
            is_copy[block.rows] &= block.lengths >= COPIED_WORDS
        return is_copy

    def listed(self) -> list[dict[str, Any]]:
        """The clusters with at least two reviews, largest first."""
        firsts, sizes = np.unique(self.first, return_counts=True)
        large = np.flatnonzero(sizes > 1)
        large = large[np.argsort(-sizes[large], kind="stable")][:MOST_CLUSTERS]
        order = np.argsort(self.first, kind="stable")
        begins = np.searchsorted(self.first[order], firsts[large])
        clusters = []
        for begin, size in zip(begins.tolist(), sizes[large].tolist(), strict=True):
            members = order[begin : begin + min(size, MOST_MEMBERS)]
            places = [dict(zip(("file", "line"), self._rows.place(int(row)), strict=True)) for row in members]
            text = " ".join(self._rows.text(int(members[0])).split())
            clusters.append({"size": size, "text": text[:SNIPPET], "members": places})
        return clusters


class _WordFiles:
    """The words of all rows that have enough of them, and the hashes of their bands, in files that are mapped."""

    def __init__(self, rows: RowStore, folder: Path) -> None:
        kept, lengths = [], []
        with (folder / "words").open("wb") as words, (folder / "bands").open("wb") as bands:
            for block in rows.blocks("words"):
                chosen = block.lengths >= FEWEST_WORDS
                values = block.values[np.repeat(chosen, block.lengths)]
                kept.append(np.flatnonzero(chosen) + block.first)
                lengths.append(block.lengths[chosen])
                words.write(values.tobytes())
                bands.write(band_hashes(values, np.cumsum(lengths[-1])).tobytes())
        self.rows = np.concatenate([np.empty(0, np.int64), *kept])
        self.starts = np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]))])
        self.values = _mapped(folder / "words", np.uint32)
        self.bands = _mapped(folder / "bands", np.uint64).reshape(-1, BANDS)


def _mapped(path: Path, kind: Any) -> NDArray[Any]:
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)


def band_hashes(values: NDArray[np.uint32], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """(rows, BANDS): a hash of the MinHashes in each band."""
    result = np.empty((len(ends), BANDS), np.uint64)
    _hash_bands(values, ends, result)
    return result


@compiled
def _hash_bands(values: Any, ends: Any, result: Any) -> None:
    start = 0
    least = np.empty(BANDS * BAND, np.uint32)
    for row in range(len(ends)):
        least[:] = np.uint32(0xFFFFFFFF)
        for at in range(start, ends[row]):
            # One good 64-bit hash per word; its halves give a family of hashes, a + i × b (Kirsch & Mitzenmacher 2006).
            state = np.uint64(values[at]) + _GOLDEN
            state = (state ^ (state >> _U32)) * _M1
            state = (state ^ (state >> _U29)) * _M2
            state ^= state >> _U32
            step = (state >> _U32) | np.uint64(1)
            for i in range(BANDS * BAND):
                state += step
                mixed = state * _GOLDEN
                value = np.uint32((mixed ^ (mixed >> _U29)) >> _U32)
                least[i] = min(least[i], value)
        for band in range(BANDS):
            mixed = np.uint64(band)
            for i in range(band * BAND, (band + 1) * BAND):
                mixed = (mixed ^ np.uint64(least[i])) * _M1
                mixed ^= mixed >> _U29
            result[row, band] = mixed
        start = ends[row]


def find_clusters(
    values: NDArray[np.uint32],
    starts: NDArray[np.int64],
    similarity: float,
    bands: NDArray[np.uint64],
    progress: Progress,
) -> NDArray[np.int64]:
    """The first row of each row's cluster.

    Args:
        values: The different words of all rows, rising within a row.
        starts: (rows + 1,) where each row starts.
        similarity: The smallest Jaccard similarity of two rows that are linked.
        bands: (rows, BANDS)
        progress: Shows how far the work is.
    """
    parents = np.arange(len(starts) - 1)
    progress.start("near-duplicates", BANDS, "band")
    for band in range(BANDS):
        keys = np.ascontiguousarray(bands[:, band])
        order = np.argsort(keys, kind="stable")
        _link(values, starts, keys, order, similarity, parents)
        progress.advance(1)
    progress.finish()
    _flatten(parents)
    return parents


@compiled
def jaccard(values: Any, first: Any, first_end: Any, second: Any, second_end: Any) -> Any:
    """The similarity of two rising lists of different words: common ones / all."""
    size, common = first_end - first + second_end - second, 0
    while first < first_end and second < second_end:
        if values[first] == values[second]:
            common += 1
            first += 1
            second += 1
        elif values[first] < values[second]:
            first += 1
        else:
            second += 1
    return common / (size - common)


@compiled
def _alike(values: Any, starts: Any, one: Any, other: Any) -> Any:
    return jaccard(values, starts[one], starts[one + 1], starts[other], starts[other + 1])


@compiled
def _root(parents: Any, row: Any) -> Any:
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@compiled
def _flatten(parents: Any) -> None:
    for row in range(len(parents)):
        parents[row] = _root(parents, row)


@compiled
def _link(values: Any, starts: Any, keys: Any, order: Any, similarity: Any, parents: Any) -> None:
    """Compare the rows that share a key with the first different ones of them, and link those that are alike.

    Two clusters are joined only if their first rows are somewhat alike too; otherwise chains of short reviews would
    connect "nice product good price" with "packaging not good". 1 - similarity is a distance, so a row that is alike
    to a neighbour of the first row always passes.
    """
    leaders = np.empty(LEADERS, np.int64)
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and keys[order[end]] == keys[order[begin]]:
            end += 1
        count = 0
        for at in range(begin, end):
            row = order[at]
            own, is_linked = _root(parents, row), False
            for i in range(count):
                other = leaders[i]
                root = _root(parents, other)
                if root == own:
                    is_linked = True
                    break
                if (
                    _alike(values, starts, row, other) >= similarity
                    and _alike(values, starts, own, root) >= 2.0 * similarity - 1.0
                ):
                    parents[max(root, own)] = min(root, own)
                    is_linked = True
                    break
            if not is_linked and count < LEADERS:
                leaders[count] = row
                count += 1
        begin = end
