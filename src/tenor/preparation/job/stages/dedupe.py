"""The dedupe stage: keep one row of each text, and choose its rating, label and split.

One task handles one text part: all rows whose text hash begins with the same bits, from every slice. Equal texts have
equal hashes, so they meet in the same part.

An unlabelled row with the text of a labelled row is a duplicate of it, even if duplicates are kept otherwise. So word
vectors, which learn from unlabelled rows, never see the text of a validation or test row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tenor.corpus.labels import NEUTRAL, NO_RATING, LabelRule
from tenor.engines.stage import JobStage
from tenor.preparation.job.outputs import finished, load_arrays, making, read_result, save_arrays, save_result
from tenor.preparation.job.stages.mapping import SliceResult, SliceRows
from tenor.preparation.job.work_folder import WorkFolder
from tenor.store.manifest import ALL_SPLITS, NO_LABEL, SPLITS, UNLABELLED

NOT_KEPT = 255
UNRATED = np.iinfo(np.int64).max  # in place of the index of a rating: the row is unlabelled; after all others

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DedupeTask:
    """Choose the rows to keep of one text part."""

    work: WorkFolder
    number: int  # of the text part
    slices: tuple[int, ...]  # the numbers of all slices
    dedupe: bool  # False keeps equal texts
    rule: LabelRule
    ratings: tuple[str, ...]  # all ratings of the input, in ascending order, without NO_RATING
    valid_share: float
    test_share: float
    split_seed: int


@dataclass(frozen=True)
class SplitTotals:
    """Kept rows of one text part in one split."""

    rows: int
    tokens: int
    classes: tuple[int, ...]  # rows of each class; empty for UNLABELLED


@dataclass(frozen=True)
class DedupeResult:
    rows: int
    duplicates: int
    neutral: int  # rows whose rating stands for no class
    splits: tuple[SplitTotals, ...]  # in the order of ALL_SPLITS


@dataclass(frozen=True)
class KeptRows:
    """The kept rows of a text part in the order of their hash, and the fate of every row of the part."""

    hashes: U64  # the first half of each kept row's hash
    slices: npt.NDArray[np.int32]  # the number of the slice that holds the row
    starts: I64  # where the row starts in the slice's ids
    lengths: npt.NDArray[np.int32]
    labels: npt.NDArray[np.uint8]
    splits: npt.NDArray[np.uint8]  # index in ALL_SPLITS
    flags: npt.NDArray[np.uint8]  # of every row, slice by slice: its split, or NOT_KEPT
    bounds: I64  # (slices + 1,): the first row of each slice in `flags`


@dataclass(frozen=True)
class PartRows:
    """All rows of a text part, slice by slice."""

    hashes: U64  # (rows, 2)
    ratings: I64  # index in the task's ratings, or UNRATED
    slices: npt.NDArray[np.int32]
    starts: I64
    lengths: npt.NDArray[np.int32]
    bounds: I64  # (slices + 1,): the first row of each slice


@JobStage
def dedupe_part(task: DedupeTask) -> DedupeResult:
    """Choose the rows to keep of one text part."""
    path = task.work.text_part(task.number)
    if (known := finished(path, DedupeResult)) is not None:
        return known
    rows = gather(task)
    order, chosen = choose(rows.hashes, rows.ratings, task.dedupe)
    is_unrated = chosen == UNRATED
    table = np.array([task.rule.label(rating) for rating in task.ratings] or [NEUTRAL])
    labels = np.where(is_unrated, NO_LABEL, table[np.where(is_unrated, 0, chosen)])
    is_kept = labels != NEUTRAL
    kept, labels = order[is_kept], labels[is_kept].astype(np.uint8)
    splits = assign_splits(rows.hashes[kept, 1], task.valid_share, task.test_share, task.split_seed)
    splits[is_unrated[is_kept]] = ALL_SPLITS.index(UNLABELLED)
    flags = np.full(len(rows.ratings), NOT_KEPT, np.uint8)
    flags[kept] = splits
    kept_rows = KeptRows(
        hashes=rows.hashes[kept, 0],
        slices=rows.slices[kept],
        starts=rows.starts[kept],
        lengths=rows.lengths[kept],
        labels=labels,
        splits=splits,
        flags=flags,
        bounds=rows.bounds,
    )
    with making(path) as folder:
        save_arrays(folder, kept_rows)
        return save_result(folder, _result(kept_rows, len(order), len(task.rule.classes)))


def gather(task: DedupeTask) -> PartRows:
    """The rows of the part from every slice.

    They are copied: a mapped array keeps its file open, and there may be more slices than files can be open.
    """
    index_of = {rating: index for index, rating in enumerate(task.ratings)} | {NO_RATING: UNRATED}
    hashes, ratings, slices, starts, lengths = [], [], [], [], []
    for number in task.slices:
        folder = task.work.slice(number)
        rows = load_arrays(folder, SliceRows)
        mine = slice(*rows.bounds[task.number : task.number + 2].tolist())
        names = read_result(folder, SliceResult).ratings
        indices = np.array([index_of[name] for name in names] or [0], np.int64)
        hashes.append(rows.hashes[mine].copy())
        ratings.append(indices[rows.codes[mine]])
        starts.append(rows.starts[mine].copy())
        lengths.append(rows.lengths[mine].copy())
        slices.append(np.full(len(starts[-1]), number, np.int32))
    return PartRows(
        hashes=np.concatenate(hashes),
        ratings=np.concatenate(ratings),
        slices=np.concatenate(slices),
        starts=np.concatenate(starts),
        lengths=np.concatenate(lengths),
        bounds=np.concatenate([[0], np.cumsum([len(rows) for rows in starts])]),
    )


def choose(hashes: U64, ratings: I64, dedupe: bool) -> tuple[I64, I64]:
    """Choose one row of each text.

    Equal texts get their most frequent rating; on a tie, the smallest. Any rating comes before none. The order depends
    only on texts and ratings, not on the files or slices that the rows come from.

    Args:
        hashes: (rows, 2), the hash of each row's text.
        ratings: (rows,), numbers that order the ratings; UNRATED for a row without one.
        dedupe: False keeps every row, except UNRATED ones with the text of a rated one.

    Returns:
        (the rows to keep in the order of their hash, the rating of each).
    """
    order = np.argsort(hashes[:, 0])
    first = hashes[order, 0]
    tied = np.zeros(len(order) + 1, np.bool_)
    tied[1:-1] = first[1:] == first[:-1]
    again = np.flatnonzero(tied[1:] | tied[:-1])  # positions where another row has the same first half of the hash
    some = order[again]
    order[again] = some[np.lexsort((ratings[some], hashes[some, 1], hashes[some, 0]))]
    if not len(again):
        return order, ratings[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (hashes[order[1:], 0] != hashes[order[:-1], 0]) | (hashes[order[1:], 1] != hashes[order[:-1], 1])
    groups = np.cumsum(new) - 1
    if not dedupe:
        first_ratings = ratings[order[new]][groups]  # rated rows come first, so UNRATED if the text has none
        order = order[(ratings[order] != UNRATED) | (first_ratings == UNRATED)]
        return order, ratings[order]
    return order[new], _most_frequent(ratings[order], groups, new)


def _most_frequent(ratings: I64, groups: I64, new: npt.NDArray[np.bool_]) -> I64:
    """The most frequent rating of each group; on a tie, the smallest; UNRATED only if no row has a rating.

    Args:
        ratings: (rows,), ascending within each group.
        groups: (rows,), the group of each row.
        new: (rows,), whether the row is the first of its group.
    """
    runs = new.copy()
    runs[1:] |= ratings[1:] != ratings[:-1]
    first = np.flatnonzero(runs)
    counts = np.diff(np.append(first, len(ratings)))
    counts[ratings[first] == UNRATED] = 0
    best = np.lexsort((ratings[first], -counts, groups[first]))
    run_groups = groups[first][best]
    leads = np.ones(len(best), np.bool_)
    leads[1:] = run_groups[1:] != run_groups[:-1]
    winners: I64 = ratings[first][best][leads]
    return winners


def assign_splits(hashes: U64, valid_share: float, test_share: float, seed: int) -> npt.NDArray[np.uint8]:
    """The split of each text: a function of its hash and the seed only, so no text is in two splits."""
    mixed = spread(hashes ^ spread(np.array([seed], np.uint64)))
    position = (mixed >> np.uint64(11)).astype(np.float64) / (1 << 53)  # in [0, 1)
    splits = np.full(len(hashes), SPLITS.index("train"), np.uint8)
    splits[position < valid_share + test_share] = SPLITS.index("test")
    splits[position < valid_share] = SPLITS.index("valid")
    return splits


def spread(values: U64) -> U64:
    """MurmurHash3's finaliser for an array; the added constant (the golden ratio) keeps 0 from staying 0."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))


def _result(kept: KeptRows, distinct: int, num_classes: int) -> DedupeResult:
    """The totals of a part of which `distinct` rows stay once duplicates are removed."""
    rows = len(kept.flags)
    splits = []
    for index, name in enumerate(ALL_SPLITS):
        mine = kept.splits == index
        classes = () if name == UNLABELLED else np.bincount(kept.labels[mine], minlength=num_classes).tolist()
        splits.append(SplitTotals(int(mine.sum()), int(kept.lengths[mine].sum()), tuple(classes)))
    return DedupeResult(rows, rows - distinct, distinct - len(kept.labels), tuple(splits))
