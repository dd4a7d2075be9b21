"""Near-duplicates against pairs of Python sets, and planted copies at the edge of the similarity."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from insights.stored import store_texts

from tenor.insights.near_duplicates import NearDuplicates, jaccard


def similarity(one: str, other: str) -> float:
    a, b = set(one.split()), set(other.split())
    return len(a & b) / len(a | b)


def planted(rows: int, pairs: int, seed: int, part: int = 9) -> tuple[list[str], list[tuple[int, int]]]:
    """Random texts, and copies in which a ninth of the words is replaced, so that the similarity is 0.8 or above."""
    rng = random.Random(seed)
    texts = [" ".join(rng.sample(range_words, rng.randint(20, 60))) for _ in range(rows)]
    found = []
    for row in range(pairs):
        words = texts[row].split()
        replaced = len(words) // part  # the similarity is (n - r) / (n + r)
        kept = rng.sample(words, len(words) - replaced)
        fresh = rng.sample([word for word in range_words if word not in words], replaced)
        copy = kept + fresh
        rng.shuffle(copy)
        found.append((row, len(texts)))
        texts.append(" ".join(copy))
    return texts, found


range_words = [f"word{letter}{other}" for letter in "abcdefghijklmnopqrstuvwxyz" for other in "abcdefghijklmnopqrst"]


def check_recall(folder: Path, rows: int, pairs: int) -> None:
    texts, copies = planted(rows, pairs, seed=1)
    assert all(0.8 <= similarity(texts[a], texts[b]) < 0.9 for a, b in copies)
    store, _ = store_texts(folder, texts)
    try:
        first = NearDuplicates(store, 0.75, folder).first
    finally:
        store.close()
    assert np.mean([first[a] == first[b] for a, b in copies]) >= 0.95
    paired = {row for pair in copies for row in pair}
    assert all(first[row] == row for row in range(len(texts)) if row not in paired)  # nothing else is alike


def test_planted_copies_are_found_and_nothing_else(tmp_path: Path) -> None:
    check_recall(tmp_path, 1500, 300)


def test_pairs_that_are_less_alike_are_not_linked(tmp_path: Path) -> None:
    texts, copies = planted(400, 400, seed=2, part=5)
    assert all(0.65 < similarity(texts[a], texts[b]) < 0.75 for a, b in copies)
    store, _ = store_texts(tmp_path, texts)
    try:
        first = NearDuplicates(store, 0.75, tmp_path).first
    finally:
        store.close()
    assert (first == np.arange(len(texts))).all()


@pytest.mark.soak
def test_planted_copies_in_many_rows(tmp_path: Path) -> None:
    check_recall(tmp_path, 200_000, 20_000)


def test_the_similarity_is_that_of_sets() -> None:
    rng = random.Random(4)
    for _ in range(200):
        one, other = (sorted(rng.sample(range(30), rng.randint(1, 12))) for _ in range(2))
        values = np.array([*one, *other], np.uint32)
        expected = len(set(one) & set(other)) / len(set(one) | set(other))
        assert jaccard(values, 0, len(one), len(one), len(values)) == pytest.approx(expected)


def test_clusters_are_listed_largest_first_with_their_places(tmp_path: Path) -> None:
    long = "this blender stopped working after three weeks of use"
    texts = [f"{long} really", "nothing to see in here", long, f"{long} today", "the lid is fine", "the lid is fine"]
    store, _ = store_texts(tmp_path, texts, batch=2)
    try:
        found = NearDuplicates(store, 0.75, tmp_path)
        listed, copies = found.listed(), found.copies()
    finally:
        store.close()
    assert [(one["size"], [member["line"] for member in one["members"]]) for one in listed] == [
        (3, [1, 3, 4]),
        (2, [5, 6]),
    ]
    assert listed[0]["text"] == texts[0]
    assert copies.tolist() == [False, False, True, True, False, False]  # four words may be written twice by chance


def test_short_texts_are_not_compared(tmp_path: Path) -> None:
    store, _ = store_texts(tmp_path, ["good product"] * 5)
    try:
        assert NearDuplicates(store, 0.75, tmp_path).listed() == []
    finally:
        store.close()


def test_a_chain_does_not_connect_texts_that_have_little_in_common(tmp_path: Path) -> None:
    """Each text shares all but one word with the next one, but the last one nothing with the first."""
    words = range_words[:40]
    texts = [" ".join(words[start : start + 10]) for start in range(30)]
    store, _ = store_texts(tmp_path, texts)
    try:
        first = NearDuplicates(store, 0.75, tmp_path).first
    finally:
        store.close()
    assert first[0] != first[-1]
    assert first[1] == first[0]
