"""Character n-grams beside a plain definition, and vectors of words that were never seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tenor
from tenor.embedding.subwords import Shape, compose, rows_of
from tenor.errors import RunError, UsageError


def fnv(text: str) -> int:
    code = 2166136261
    for byte in text.encode():
        code = (code ^ byte) * 16777619 % (1 << 32)
    return code


def ngrams(word: str, low: int, high: int) -> list[str]:
    marked = f"<{word}>"
    found = [
        marked[first : first + size]
        for first in range(len(marked))
        for size in range(low, high + 1)
        if first + size <= len(marked)
    ]
    return [gram for gram in found if gram not in ("<", ">")]


@pytest.mark.parametrize(("low", "high"), [(3, 6), (1, 3), (2, 2)])
def test_a_word_has_its_own_row_and_those_of_its_n_grams(low: int, high: int) -> None:
    words = ["a", "where", "größe", "좋아요", "!"]
    rows = rows_of(words, Shape(low, high, 1000), first_bucket=7)
    for number, word in enumerate(words):
        found = rows.rows[rows.starts[number] : rows.starts[number + 1]].tolist()
        assert found == [number, *(7 + fnv(gram) % 1000 for gram in ngrams(word, low, high))]


def test_a_word_is_the_mean_of_its_rows() -> None:
    table = np.random.default_rng(0).random((50, 4)).astype(np.float32)
    rows = rows_of(["one", "three", ""], Shape(3, 4, 40), 10)
    made = compose(table, rows)
    for number in range(3):
        places = rows.rows[rows.starts[number] : rows.starts[number + 1]]
        np.testing.assert_allclose(made[number], table[places].mean(axis=0), rtol=1e-6)


def test_a_misspelt_word_is_near_the_right_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    groups = [["delicious", "tasteful", "yummylicious"], ["broken", "defective", "damaged"]]
    lines = [" ".join(rng.choice(groups[rng.integers(2)], 12)) for _ in range(1500)]
    (tmp_path / "text").write_text("\n".join(lines))
    asked = {"dim": 16, "epochs": 3, "workers": 1, "sample": 0.0, "lr": 0.05}
    settings = tenor.EmbedSettings(subwords=True, buckets=2000, **asked)  # type: ignore[arg-type]
    tenor.embed(tmp_path / "text", tmp_path / "vectors", settings)
    vectors = tenor.load_vectors(tmp_path / "vectors")
    (nearest,) = tenor.neighbours(vectors, ["deliciuos"], count=3).values()
    assert {word for word, _ in nearest} == set(groups[0])
    plain = tenor.EmbedSettings(**asked)  # type: ignore[arg-type]
    tenor.embed(tmp_path / "text", tmp_path / "plain", plain)
    with pytest.raises(UsageError, match="there is no vector for 'deliciuos'"):
        tenor.neighbours(tmp_path / "plain", ["deliciuos"])


def test_a_folder_whose_n_grams_cannot_be_right_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("good bad " * 200)
    settings = tenor.EmbedSettings(subwords=True, buckets=2000, dim=4, epochs=1, workers=1)
    tenor.embed(tmp_path / "text", tmp_path / "vectors", settings)
    config = tmp_path / "vectors" / "config.json"
    head, mark, tail = config.read_text().partition('"subwords": {')
    for change in ('"buckets": 0', '"buckets": 1000000000000', '"buckets": "9"', '"buckets": 1999'):
        config.write_text(head + mark + tail.replace('"buckets": 2000', change, 1))
        with pytest.raises(RunError):
            tenor.load_vectors(tmp_path / "vectors")


def test_n_grams_cannot_be_longer_than_the_longest() -> None:
    with pytest.raises(UsageError, match="max"):
        tenor.EmbedSettings(subwords=True, min_chars=5, max_chars=4)
