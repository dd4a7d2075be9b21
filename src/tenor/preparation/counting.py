"""The vocabulary by distributed counting: each slice of the rows counts its words, each part of the words adds up."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.preparation import dedupe, mapping
from tenor.preparation.ragged import count_rows
from tenor.preparation.vocabulary import Vocabulary
from tenor.preparation.words import WordTable, pick, unpack, word_hashes
from tenor.preparation.workfolder import finished, load, making, part_path, save, save_meta
from tenor.store.manifest import SPLITS

COUNT_STAGE = "tenor.preparation.counting:count_slice"
MERGE_STAGE = "tenor.preparation.counting:merge_part"
TRANSLATE_STAGE = "tenor.preparation.counting:translate_slice"


def count_slice(task: dict[str, Any]) -> dict[str, Any]:
    """Count the words of one slice over its kept training rows; words are left sorted by hash."""
    path = part_path(task["work"], "counts", task["number"])
    if (known := finished(path)) is not None:
        return known
    mapped = load(part_path(task["work"], mapping.FOLDER, task["number"]))
    words, starts = mapped["words"], mapped["word_starts"]
    counts = np.zeros(len(starts) - 1, np.int64)
    chosen = _flags(task) == SPLITS.index("train")
    count_rows(mapped["ids"], mapped["starts"], mapped["lengths"], chosen, counts)
    hashes = word_hashes(words, starts)
    order = np.argsort(hashes)
    order = order[counts[order] > 0]
    with making(path) as folder:
        save(folder, order=order, hashes=hashes[order], counts=counts[order])
        return save_meta(folder, {"word_bytes": int((starts[order + 1] - starts[order]).sum()), "words": len(order)})


def _flags(task: dict[str, Any]) -> npt.NDArray[np.uint8]:
    """What became of each row of the slice, from the parts that decided it."""
    flags = []
    for part in range(task["parts"]):
        rows = load(part_path(task["work"], dedupe.FOLDER, part))
        first, last = rows["bounds"][task["place"] : task["place"] + 2]
        flags.append(rows["flags"][first:last].copy())  # so that no file stays open
    return np.concatenate(flags)


def merge_part(task: dict[str, Any]) -> dict[str, Any]:
    """Add up one part of the words, and keep its most frequent ones: the whole's are among them."""
    path = part_path(task["work"], "words", task["number"])
    if (known := finished(path)) is not None:
        return known
    table, totals = WordTable(), np.zeros(0, np.int64)
    for number in task["slices"]:
        packed, starts, counts = _words_of(task, number)
        ids = table.add(packed, starts)
        if len(table) > len(totals):
            totals = np.concatenate([totals, np.zeros(len(table) + len(totals), np.int64)])
        totals[ids] += counts  # a slice names each word once
    counts = totals[: len(table)]
    chosen = _frequent(counts, task["top"])
    if len(chosen) > task["top"]:
        tied = unpack(*pick(*table.contents(), chosen))
        chosen = chosen[_ranked(tied, counts[chosen], task["top"])]
    words, starts = pick(*table.contents(), chosen)
    with making(path) as folder:
        save(folder, words=words, starts=starts, counts=counts[chosen])
        return save_meta(folder, {"words": len(table)})


def _words_of(
    task: dict[str, Any], number: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A slice's words of this part, packed, and their counts."""
    counted = load(part_path(task["work"], "counts", number))
    hashes, bits = counted["hashes"], task["bits"]
    low = task["number"] << (64 - bits)
    high = ((task["number"] + 1) << (64 - bits)) - 1
    first = int(np.searchsorted(hashes, np.uint64(low), "left"))
    last = int(np.searchsorted(hashes, np.uint64(high), "right"))
    order = counted["order"][first:last]
    mapped = load(part_path(task["work"], mapping.FOLDER, number))
    return *pick(mapped["words"], mapped["word_starts"], order), counted["counts"][first:last]


def _frequent(counts: npt.NDArray[np.int64], top: int) -> npt.NDArray[np.int64]:
    """The places of the `top` largest counts, and of those that equal the least of them."""
    if len(counts) <= top:
        return np.arange(len(counts))
    return np.flatnonzero(counts >= np.partition(counts, len(counts) - top)[len(counts) - top])


def _ranked(words: list[bytes], counts: npt.NDArray[np.int64], top: int) -> npt.NDArray[np.int64]:
    """The places of the first `top` words by falling count, ties by the word."""
    by_word = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)  # pairs would be slow by the many
    return by_word[np.argsort(-counts[by_word], kind="stable")][:top]


def collect(work: str, parts: int, top: int) -> Vocabulary:
    """The vocabulary, from the most frequent words of every part."""
    found = [load(part_path(work, "words", part)) for part in range(parts)]
    every = [word for part in found for word in unpack(part["words"], part["starts"])]
    totals = np.concatenate([part["counts"] for part in found])
    chosen = _frequent(totals, top)
    words = [every[place] for place in chosen.tolist()]
    return Vocabulary([words[place].decode() for place in _ranked(words, totals[chosen], top).tolist()])


@functools.lru_cache(maxsize=1)
def _vocabulary(work: str, sha256: str) -> Vocabulary:
    """The job's vocabulary, read once a process; its hash keeps another job's from being taken for it."""
    vocabulary = Vocabulary.load(part_path(work, "vocabulary", 0) / "vocab.json")
    assert vocabulary.sha256 == sha256
    return vocabulary


def translate_slice(task: dict[str, Any]) -> dict[str, Any]:
    """The table from a slice's own word ids to those of the vocabulary."""
    path = part_path(task["work"], "tables", task["number"])
    if (known := finished(path)) is not None:
        return known
    vocabulary = _vocabulary(task["work"], task["vocab_sha256"])
    mapped = load(part_path(task["work"], mapping.FOLDER, task["number"]))
    with making(path) as folder:
        save(folder, table=vocabulary.look_up(mapped["words"], mapped["word_starts"]))
        return save_meta(folder, {})
