"""The n-grams of rows against plain Python: sets of token tuples, hashed by the published function."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.models.wide.characters import hash_characters
from tenor.models.wide.ngrams import NgramIndex, bucket_weights, count_rows_with

MASK = (1 << 64) - 1
ROWS = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=7)


def bucket(tokens: tuple[int, ...], bits: int, state: int = 0) -> int:
    """splitmix64 over the tokens, in Python's own integers."""
    for token in tokens:
        state = (state * 0x9E3779B97F4A7C15 + token + 1) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return state >> (64 - bits)


def ngrams(row: list[int], longest: int, bits: int) -> set[int]:
    return {
        bucket(tuple(row[at : at + size]), bits) for size in range(1, longest + 1) for at in range(len(row) - size + 1)
    }


def pack(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([token for row in rows for token in row], np.int32), np.array([len(row) for row in rows], np.int32)


@given(rows=ROWS, longest=st.integers(1, 4), bits=st.sampled_from([8, 20]), blocks=st.integers(1, 3))
def test_rows_are_counted_once_per_ngram_and_class(rows: list[list[int]], longest: int, bits: int, blocks: int) -> None:
    labels = np.array([sum(row) % 3 for row in rows], np.uint8)
    parts = [(*pack(rows[at::blocks]), labels[at::blocks]) for at in range(blocks)]
    counts = count_rows_with(parts, bits, longest, 3)
    for label in range(3):
        own = [row for row, other in zip(rows, labels, strict=True) if other == label]
        expected = Counter(one for row in own for one in ngrams(row, longest, bits))
        assert {place: int(counts[label, place]) for place in np.flatnonzero(counts[label])} == dict(expected)


def test_labels_beyond_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="label below"):
        count_rows_with([(*pack([[1]]), np.array([2], np.uint8))], 8, 1, 2)


@given(rows=ROWS, data=st.data())
def test_an_index_finds_the_ngrams_of_its_own_rows(rows: list[list[int]], data: st.DataObject) -> None:
    """The buckets are those of all rows; the weights of a row are scaled to length 1."""
    first = data.draw(st.integers(0, len(rows)))
    own = slice(first, data.draw(st.integers(first, len(rows))))
    weights = np.random.default_rng(1).random(1 << 8).astype(np.float32)
    weights[::3] = 0.0  # ignored
    index = NgramIndex(weights, 3)
    index(*pack([[1, 2, 3], [4]]))  # what it has seen before does not matter
    found = index(*pack(rows), own)
    every = [{one for one in ngrams(row, 3, 8) if weights[one]} for row in rows]
    assert found.buckets.tolist() == sorted(set().union(*every))
    assert len(found.starts) == own.stop - own.start + 1
    for at, expected in enumerate(every[own]):
        part = slice(found.starts[at], found.starts[at + 1])
        got = dict(zip(found.buckets[found.ids[part]].tolist(), found.weights[part].tolist(), strict=True))
        assert set(got) == expected
        length = np.sqrt(sum(float(weights[one]) ** 2 for one in expected))
        assert all(value == pytest.approx(float(weights[one]) / length, rel=1e-5) for one, value in got.items())


def test_threads_may_share_an_index() -> None:
    rng = np.random.default_rng(3)
    index = NgramIndex(np.ones(1 << 12, np.float32), 3)
    batches = [pack([rng.integers(0, 50, 80).tolist() for _ in range(20)]) for _ in range(40)]
    expected = [index(*batch) for batch in batches]
    found: dict[int, bool] = {}

    def work(first: int) -> None:
        for number in range(first, len(batches), 4):
            got = index(*batches[number])
            found[number] = all(np.array_equal(now, vars(expected[number])[name]) for name, now in vars(got).items())

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(batches) and all(found.values())


def test_old_marks_are_forgotten_before_they_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.models.wide.ngrams._LARGEST_STAMP", 10)
    index = NgramIndex(np.ones(1 << 8, np.float32), 2)
    first = index(*pack([[1, 2], [2, 3]]))
    for _ in range(20):
        again = index(*pack([[1, 2], [2, 3]]))
        assert again.ids.tolist() == first.ids.tolist() and again.starts.tolist() == first.starts.tolist()


def test_an_ngram_weighs_by_its_frequency_and_by_how_well_it_tells_the_classes_apart() -> None:
    counts = np.array([[0, 1, 2, 10, 40, 60], [0, 0, 0, 40, 10, 40], [0, 0, 1, 0, 0, 0]], np.int32)
    weights = bucket_weights(counts, 100)
    assert weights[0] == weights[1] == weights[5] == 0.0  # too rare, or in every row
    for bucket in (2, 3, 4):
        ratios = []
        for label in range(3):
            own, rest = counts[label] + 1, np.delete(counts, label, axis=0).sum(axis=0) + 2
            ratios.append(abs(np.log((own[bucket] / own.sum()) / (rest[bucket] / rest.sum()))))
        expected = np.log(100 / counts[:, bucket].sum()) * np.sqrt(max(ratios))
        assert weights[bucket] == pytest.approx(expected, rel=1e-6)


WORDS = ["", "a", "¬good", "good", "goodgood", "bad", "unwatchable", "\u00e9t\u00e9", "\U0001d11e!"]
SEED, NEGATED_SEED = 0xC4CEB9FE1A85EC53, 0x9FB21C651E98DF25


def characters_of(word: str, longest: int, bits: int) -> set[int]:
    seed = NEGATED_SEED if word.startswith("¬") else SEED
    marked = f"<{word.removeprefix('¬')}>"
    sizes = range(min(3, longest), longest + 1)
    parts = {marked[at : at + size] for size in sizes for at in range(len(marked) - size + 1)}
    return {bucket(tuple(map(ord, part)), bits, seed) for part in parts}


@pytest.mark.parametrize("longest", [0, 2, 3, 5])
def test_character_ngrams_of_words(longest: int) -> None:
    """With marks at both ends, by their code points; ids below the first word have none."""
    found = hash_characters(WORDS, 2, longest)
    for place, word in enumerate(WORDS if longest else []):
        own = (found.hashes[found.starts[place + 2] : found.starts[place + 3]] >> np.uint64(44)).tolist()
        assert set(own) == characters_of(word, longest, 20)
        size_of_word = len(word.removeprefix("¬"))
        assert len(own) == sum(max(0, size_of_word + 3 - size) for size in range(min(3, longest), longest + 1))
    assert found.starts[:3].tolist() == [0, 0, 0] if longest else not len(found.hashes)


@given(rows=st.lists(st.lists(st.integers(0, len(WORDS) + 3), min_size=1, max_size=9), min_size=1, max_size=7))
def test_rows_have_the_character_ngrams_of_their_words(rows: list[list[int]]) -> None:
    """Also where a token has none: padding, the unknown word, and ids beyond the vocabulary."""
    chars, bits = hash_characters(WORDS, 2, 4), 20
    assert chars.count(pack(rows)[0]) == len(chars.of(pack(rows)[0])[1])
    every = [ngrams(row, 2, bits) for row in rows]
    for row, own in zip(rows, every, strict=True):
        own.update(*(characters_of(WORDS[token - 2], 4, bits) for token in row if 2 <= token < len(WORDS) + 2))
    found = NgramIndex(np.ones(1 << bits, np.float32), 2, chars)(*pack(rows))
    for at, expected in enumerate(every):
        assert set(found.buckets[found.ids[found.starts[at] : found.starts[at + 1]]].tolist()) == expected
    counts = count_rows_with([(*pack(rows), np.zeros(len(rows), np.uint8))], bits, 2, 2, chars)
    assert {place: int(counts[0, place]) for place in np.flatnonzero(counts[0])} == Counter(
        one for own in every for one in own
    )


def test_character_ngrams_weigh_less() -> None:
    chars = hash_characters(["good"], 2, 3)
    counts = np.random.default_rng(0).integers(0, 9, (2, 1 << 10)).astype(np.int32)
    own = {bucket(tuple(map(ord, part)), 10, SEED) for part in ("<go", "goo", "ood", "od>")}
    expected = bucket_weights(counts, 100)
    expected[list(own)] *= 0.4
    np.testing.assert_allclose(bucket_weights(counts, 100, chars), expected)


def test_words_that_are_hashed_in_blocks_have_the_same_ngrams(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["good", "a", "¬good", "영화", "unwatchable", "été"]
    whole = hash_characters(words, 2, 5)
    monkeypatch.setattr("tenor.models.wide.characters._BLOCK", 4)
    blocks = hash_characters(words, 2, 5)
    assert blocks.starts.tolist() == whole.starts.tolist()
    assert blocks.hashes.tolist() == whole.hashes.tolist()
