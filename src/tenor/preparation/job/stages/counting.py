"""The vocabulary by distributed counting, in two stages.

The count stage counts the words of each slice. The merge stage adds up the counts of each word part: all words whose
hash begins with the same bits, from every slice. It keeps the most frequent words of the part, and the most frequent
words of all parts make the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tenor.engines.stage import JobStage
from tenor.preparation.job.outputs import finished, load_arrays, making, save_arrays, save_result
from tenor.preparation.job.stages.dedupe import KeptRows
from tenor.preparation.job.stages.mapping import SliceRows
from tenor.preparation.job.stages.word_ids import count_rows
from tenor.preparation.job.work_folder import WorkFolder
from tenor.preparation.tokeniser.spelling import CODE_POINTS, count_characters, is_read_by_character
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.preparation.tokeniser.words import WordTable, pick, unpack, word_hashes
from tenor.store.manifest import ALL_SPLITS, UNLABELLED

COUNTED = ("train", UNLABELLED)  # splits whose words make the vocabulary

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CountTask:
    """Count the words of one slice in its kept training rows and unlabelled rows."""

    work: WorkFolder
    slice: int  # number of the slice
    slice_index: int  # its index in the list of all slices
    num_parts: int  # text parts


@dataclass(frozen=True)
class CountResult:
    words: int
    word_bytes: int


@dataclass(frozen=True)
class WordCounts:
    """The words of a slice that occur in training or unlabelled rows, in the order of their hash."""

    order: I64  # id of each word in the slice
    hashes: npt.NDArray[np.uint64]
    counts: I64


@dataclass(frozen=True)
class MergeTask:
    """Add up the counts of one word part, and keep its `top` most frequent words."""

    work: WorkFolder
    number: int  # of the word part
    part_bits: int  # there are 2^part_bits word parts
    slices: tuple[int, ...]
    top: int


@dataclass(frozen=True)
class MergeResult:
    words: int  # different words of the part


@dataclass(frozen=True)
class FrequentWords:
    """The most frequent words of a word part, at least `top` of them if the part has so many."""

    words: npt.NDArray[np.uint8]  # the bytes of all words
    starts: I64  # where each word starts in `words`
    counts: I64
    characters: npt.NDArray[np.int32]  # the code points that occur in any word of the part
    character_counts: I64


@JobStage
def count_slice(task: CountTask) -> CountResult:
    """Count the words of one slice."""
    path = task.work.word_counts(task.slice)
    if (known := finished(path, CountResult)) is not None:
        return known
    rows = load_arrays(task.work.slice(task.slice), SliceRows)
    starts = rows.word_starts
    counts = np.zeros(len(starts) - 1, np.int64)
    chosen = np.isin(_flags(task), [ALL_SPLITS.index(split) for split in COUNTED])
    count_rows(rows.ids, rows.starts, rows.lengths, chosen, counts)
    hashes = word_hashes(rows.words, starts)
    order = np.argsort(hashes)
    order = order[counts[order] > 0]
    with making(path) as folder:
        save_arrays(folder, WordCounts(order, hashes[order], counts[order]))
        return save_result(folder, CountResult(len(order), int((starts[order + 1] - starts[order]).sum())))


def _flags(task: CountTask) -> npt.NDArray[np.uint8]:
    """The split of each row of the slice, or NOT_KEPT, as the dedupe stage chose it."""
    flags = []
    for part in range(task.num_parts):
        rows = load_arrays(task.work.text_part(part), KeptRows)
        first, last = rows.bounds[task.slice_index : task.slice_index + 2]
        flags.append(rows.flags[first:last].copy())  # copied, so that no file stays open
    return np.concatenate(flags)


@JobStage
def merge_part(task: MergeTask) -> MergeResult:
    """Add up the counts of one word part. Every word of the vocabulary is among the part's `top` most frequent."""
    path = task.work.word_part(task.number)
    if (known := finished(path, MergeResult)) is not None:
        return known
    table, totals = WordTable(), np.zeros(0, np.int64)
    for number in task.slices:
        packed, starts, counts = _words_of(task, number)
        ids = table.add(packed, starts)
        if len(table) > len(totals):
            totals = np.concatenate([totals, np.zeros(len(table) + len(totals), np.int64)])
        totals[ids] += counts  # each word occurs once in `ids`
    counts = totals[: len(table)]
    characters = count_characters(*table.contents(), counts)
    seen = np.flatnonzero(characters).astype(np.int32)
    chosen = _frequent(counts, task.top)
    if len(chosen) > task.top:
        tied = unpack(*pick(*table.contents(), chosen))
        chosen = chosen[_ranked(tied, counts[chosen], task.top)]
    words, starts = pick(*table.contents(), chosen)
    with making(path) as folder:
        save_arrays(folder, FrequentWords(words, starts, counts[chosen], seen, characters[seen]))
        return save_result(folder, MergeResult(len(table)))


def _words_of(task: MergeTask, number: int) -> tuple[npt.NDArray[np.uint8], I64, I64]:
    """(bytes, starts, counts) of the words of a slice that belong to the part."""
    counted = load_arrays(task.work.word_counts(number), WordCounts)
    low = task.number << (64 - task.part_bits)
    high = ((task.number + 1) << (64 - task.part_bits)) - 1
    first = int(np.searchsorted(counted.hashes, np.uint64(low), "left"))
    last = int(np.searchsorted(counted.hashes, np.uint64(high), "right"))
    rows = load_arrays(task.work.slice(number), SliceRows)
    return *pick(rows.words, rows.word_starts, counted.order[first:last]), counted.counts[first:last]


def _frequent(counts: I64, top: int) -> I64:
    """The indices of the `top` largest counts, and of all others that equal the smallest of them."""
    if len(counts) <= top:
        return np.arange(len(counts))
    return np.flatnonzero(counts >= np.partition(counts, len(counts) - top)[len(counts) - top])


def _ranked(words: list[bytes], counts: I64, top: int) -> I64:
    """The indices of the first `top` words by falling count; words of equal count are in the order of their bytes."""
    by_word = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)  # faster than sorting pairs
    return by_word[np.argsort(-counts[by_word], kind="stable")][:top]


def collect_vocabulary(work: WorkFolder, num_parts: int, top: int, units: str) -> tuple[Vocabulary, str]:
    """The vocabulary: the `top` most frequent words or characters of all word parts.

    Args:
        work: Holds the outputs of the merge stage.
        num_parts: Word parts.
        top: The largest number of entries.
        units: `words`, `characters`, or `auto` to decide by the scripts of the words.

    Returns:
        The vocabulary, and what its entries are: `words` or `characters`.
    """
    parts = [load_arrays(work.word_part(part), FrequentWords) for part in range(num_parts)]
    characters = np.zeros(CODE_POINTS, np.int64)
    for part in parts:
        characters[part.characters] += part.character_counts
    if units == "characters" or (units == "auto" and is_read_by_character(characters)):
        return _most_frequent_characters(characters, top), "characters"
    return _most_frequent_words(parts, top), "words"


def _most_frequent_characters(counts: I64, top: int) -> Vocabulary:
    """The characters by falling count; those of equal count in the order of their code points."""
    order = np.argsort(-counts, kind="stable")[:top]
    return Vocabulary([chr(point) for point in order.tolist() if counts[point]])


def _most_frequent_words(parts: list[FrequentWords], top: int) -> Vocabulary:
    every = [word for part in parts for word in unpack(part.words, part.starts)]
    totals = np.concatenate([part.counts for part in parts])
    chosen = _frequent(totals, top)
    words = [every[index] for index in chosen.tolist()]
    return Vocabulary([words[index].decode() for index in _ranked(words, totals[chosen], top).tolist()])
