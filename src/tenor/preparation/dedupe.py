"""The first reduce: one part of the texts, by hash. Groups equal texts, settles their rating, label and split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.corpus.labels import LabelRule
from tenor.preparation import mapping
from tenor.preparation.workfolder import finished, load, making, part_path, save, save_meta
from tenor.store.manifest import SPLITS

STAGE = "tenor.preparation.dedupe:run"
FOLDER = "parts"
NOT_KEPT = 255

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass
class Rows:
    """The part's rows from every slice, slice by slice."""

    hashes: U64  # (rows, 2)
    ratings: I64  # rank among all ratings
    slices: npt.NDArray[np.int32]  # the folder each is in
    starts: I64  # of the tokens, in the slice's
    lengths: npt.NDArray[np.int32]
    bounds: I64  # where each slice's rows start


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Choose the rows to keep of one part."""
    path = part_path(task["work"], FOLDER, task["number"])
    if (known := finished(path)) is not None:
        return known
    rows = gather(task)
    order, chosen = choose(rows.hashes, rows.ratings, task["dedupe"])
    rule = LabelRule.from_dict(task["rule"])
    table = np.array([rule.label(rating) for rating in task["ratings"]] or [-1])
    labels = table[chosen]
    kept = order[labels >= 0]
    labels = labels[labels >= 0].astype(np.uint8)
    splits = assign(rows.hashes[kept, 1], task["shares"], task["split_seed"])
    flags = np.full(len(rows.ratings), NOT_KEPT, np.uint8)
    flags[kept] = splits
    with making(path) as folder:
        save(
            folder,
            hashes=rows.hashes[kept, 0],
            slices=rows.slices[kept],
            starts=rows.starts[kept],
            lengths=rows.lengths[kept],
            labels=labels,
            splits=splits,
            flags=flags,
            bounds=rows.bounds,
        )
        return save_meta(folder, _totals(rows, len(order), splits, labels, rows.lengths[kept], len(rule.classes)))


def gather(task: dict[str, Any]) -> Rows:
    """This part's rows of every slice, copied: a mapped file that is held takes a descriptor, and slices are many."""
    rank_of = {rating: rank for rank, rating in enumerate(task["ratings"])}
    hashes, ratings, slices, starts, lengths = [], [], [], [], []
    for number in task["slices"]:
        folder = part_path(task["work"], mapping.FOLDER, number)
        mapped = load(folder)
        mine = slice(*mapped["bounds"][task["number"] : task["number"] + 2].tolist())
        names = (finished(folder) or {})["ratings"]
        ranks = np.array([rank_of[name] for name in names] or [0], np.int64)
        hashes.append(mapped["hashes"][mine].copy())
        ratings.append(ranks[mapped["codes"][mine]])
        starts.append(mapped["starts"][mine].copy())
        lengths.append(mapped["lengths"][mine].copy())
        slices.append(np.full(len(starts[-1]), number, np.int32))
    first = np.concatenate([[0], np.cumsum([len(part) for part in starts])])
    return Rows(
        np.concatenate(hashes),
        np.concatenate(ratings),
        np.concatenate(slices),
        np.concatenate(starts),
        np.concatenate(lengths),
        first,
    )


def choose(hashes: U64, ratings: I64, dedupe: bool) -> tuple[I64, I64]:
    """(rows to keep in order of their hash, the rating of each).

    Of equal texts one row stays, with their most frequent rating, the smaller on a tie. The order depends on the
    texts and ratings alone, not on where the rows came from.
    """
    order = np.argsort(hashes[:, 0])
    first = hashes[order, 0]
    tied = np.zeros(len(order) + 1, np.bool_)
    tied[1:-1] = first[1:] == first[:-1]
    again = np.flatnonzero(tied[1:] | tied[:-1])  # places whose first hash is not alone
    some = order[again]
    order[again] = some[np.lexsort((ratings[some], hashes[some, 1], hashes[some, 0]))]
    if not dedupe or not len(again):
        return order, ratings[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (hashes[order[1:], 0] != hashes[order[:-1], 0]) | (hashes[order[1:], 1] != hashes[order[:-1], 1])
    return order[new], _settle(ratings[order], np.cumsum(new) - 1, new)


def _settle(ratings: I64, groups: I64, new: npt.NDArray[np.bool_]) -> I64:
    """The most frequent rating of each group; ratings come sorted within groups, so the first best is the smallest."""
    runs = new.copy()
    runs[1:] |= ratings[1:] != ratings[:-1]
    first = np.flatnonzero(runs)
    counts = np.diff(np.append(first, len(ratings)))
    best = np.lexsort((ratings[first], -counts, groups[first]))
    run_groups = groups[first][best]
    leads = np.ones(len(best), np.bool_)
    leads[1:] = run_groups[1:] != run_groups[:-1]
    settled: I64 = ratings[first][best][leads]
    return settled


def assign(hashes: U64, shares: list[float], seed: int) -> npt.NDArray[np.uint8]:
    """The split of each text: a function of its hash and the seed alone, so no text is in two."""
    mixed = spread(hashes ^ spread(np.array([seed], np.uint64)))
    place = (mixed >> np.uint64(11)).astype(np.float64) / (1 << 53)
    valid, test = shares
    splits = np.full(len(hashes), SPLITS.index("train"), np.uint8)
    splits[place < valid + test] = SPLITS.index("test")
    splits[place < valid] = SPLITS.index("valid")
    return splits


def spread(values: U64) -> U64:
    """MurmurHash3's finaliser, over an array; the golden ratio keeps 0 from staying 0."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))


def _totals(
    rows: Rows,
    distinct: int,
    splits: npt.NDArray[np.uint8],
    labels: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int32],
    classes: int,
) -> dict[str, Any]:
    return {
        "rows": len(rows.ratings),
        "duplicates": len(rows.ratings) - distinct,
        "neutral": distinct - len(labels),
        "splits": [
            {
                "tokens": int(lengths[splits == split].sum()),
                "classes": np.bincount(labels[splits == split], minlength=classes).tolist(),
            }
            for split in range(len(SPLITS))
        ],
    }
