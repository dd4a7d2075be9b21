"""Frequencies of words and n-grams in prepared data: how many reviews of each length contain each row of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import StoreError, UsageError
from tenor.models.rows import shortened
from tenor.models.wide.characters import NO_CHARACTERS, Characters, hash_characters
from tenor.models.wide.ngrams import bucket_weights, count_rows_with
from tenor.planning.costs.touched_rows import GROUPS, LengthGroup, RowFrequencies, spectrum_of
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, vocabulary_of
from tenor.store.manifest import Manifest
from tenor.store.reader import Split, open_split
from tenor.store.trusted import read_json
from tenor.training.tasks.review_batches import NGRAMS, WORDS

MOST_REVIEWS = 200_000  # counted; more would change little
BLOCK = 4096  # reviews read at a time
MAX_JOB_BYTES = 16 << 20

Counts = NDArray[np.int64]


def read_frequencies(data: Path, model: Mapping[str, Any], data_sha256: str) -> RowFrequencies:
    """Count the tables of a model in the training rows of prepared data.

    Args:
        data: A folder made by `tenor prepare`.
        model: The model as config.json describes it.
        data_sha256: The hash of the data that the model was trained on; empty if it is not known.

    Raises:
        UsageError: The data is other data than the run was trained on.
    """
    manifest = Manifest.load(data)
    if data_sha256 and manifest.sha256 != data_sha256:
        raise UsageError("is not the data that the run was trained on", where=data, remedy="give --data that data")
    with open_split(data, "train") as split:
        return count_tables(split, model, _characters(data, model))


def _characters(data: Path, model: Mapping[str, Any]) -> Characters:
    longest = int((model.get("wide") or {}).get("characters", 0))
    return hash_characters(vocabulary_of(data).words, FIRST_WORD, longest) if longest else NO_CHARACTERS


def count_tables(split: Split, model: Mapping[str, Any], characters: Characters = NO_CHARACTERS) -> RowFrequencies:
    """The frequencies of both tables, in groups of similar length."""
    deep, wide = model.get("deep"), model.get("wide")
    most = int(deep["length"]) if deep else None
    rows = np.arange(len(split))
    if len(rows) > MOST_REVIEWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_REVIEWS, replace=False))
    lengths = split.lengths[rows] if most is None else np.minimum(split.lengths[rows], most)
    members = np.array_split(rows[np.argsort(lengths, kind="stable")], min(GROUPS, len(rows)))
    classes = int(model["num_classes"]) if wide else 0
    by_class = [
        _count_ngrams(split, group, wide, classes, characters) if wide else np.empty((0, 0), np.int32)
        for group in members
    ]
    ngrams = [counts.sum(axis=0, dtype=np.int64) for counts in by_class]
    known = bucket_weights(np.sum(by_class, axis=0), len(rows)) > 0 if wide else None  # the model ignores the others
    words = [_count_words(split, group, deep) if deep else np.empty(0, np.int64) for group in members]

    def describe(group: NDArray[np.int64], of_ngrams: Counts, of_words: Counts) -> LengthGroup:
        spectra = {NGRAMS: spectrum_of(of_ngrams, known)} if wide else {}
        spectra |= {WORDS: spectrum_of(of_words)} if deep else {}
        tokens = split.lengths[group] if most is None else np.minimum(split.lengths[group], most)
        return LengthGroup(len(group), float(tokens.mean()), spectra)

    groups = tuple(map(describe, members, ngrams, words))
    return RowFrequencies(groups, describe(rows, np.sum(ngrams, axis=0), np.sum(words, axis=0)))


def _blocks(split: Split, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]]:
    """Rows in rising order, with their tokens and lengths."""
    for first in range(0, len(rows), BLOCK):
        part = np.sort(rows[first : first + BLOCK])
        yield part, *split.gather(part)


def _count_ngrams(
    split: Split, rows: NDArray[np.int64], wide: Mapping[str, Any], num_classes: int, characters: Characters
) -> NDArray[np.int32]:
    """The reviews of each class that contain each n-gram, (classes, n-grams)."""
    blocks = ((tokens, lengths, split.labels[part]) for part, tokens, lengths in _blocks(split, rows))
    return count_rows_with(blocks, int(wide["bits"]), int(wide["longest"]), num_classes, characters)


def _count_words(split: Split, rows: NDArray[np.int64], deep: Mapping[str, Any]) -> Counts:
    """The reviews that contain each word, among the words that the deep part reads; all contain the padding."""
    vocab_size, most = int(deep["vocab_size"]), int(deep["length"])
    counts = np.zeros(vocab_size, np.int64)
    for _, tokens, lengths in _blocks(split, rows):
        kept, kept_lengths = shortened(tokens, lengths, most)
        review = np.repeat(np.arange(len(kept_lengths), dtype=np.int64), kept_lengths)
        pairs = np.unique(review * vocab_size + kept)
        counts += np.bincount(pairs % vocab_size, minlength=vocab_size)
    counts[0] = len(rows)
    return counts


def read_prepare_rate(data: Path) -> float | None:
    """Bytes per second and worker with which the data was prepared, from its job.json; None if it does not say.

    The seconds are those of the stages: starting and compiling take as long for any number of bytes.
    """
    try:
        job = read_json(data / "job.json", MAX_JOB_BYTES, StoreError)
        seconds = sum(map(float, job.get("stages", {}).values())) or float(job["seconds"])
        rate = float(job["bytes"]) / seconds / int(job["workers"])
    except (OSError, StoreError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, OverflowError):
        return None
    return rate if 0 < rate < math.inf else None
