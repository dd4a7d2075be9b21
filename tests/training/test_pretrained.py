"""Word vectors from a file become the first rows of the embedding."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.training import SMALL, run

from tenor.errors import UsageError
from tenor.models.classifier import RecurrentClassifier
from tenor.preparation.vocabulary import Vocabulary
from tenor.training.pretrained import read_vectors
from tenor.training.reviews import Reviews

TEXT = "2 3\nsuperb 1 2 3\nunheard 4 5 6\nawful -1 0.5 1e-3\n"


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_words_find_their_places(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    places, vectors = read_vectors(file, ["awful", "plot", "superb"], 3)
    assert places.tolist() == [2, 0]
    np.testing.assert_allclose(vectors, [[1, 2, 3], [-1, 0.5, 1e-3]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("superb 1 2\n", "--embedding-dim 2"),
        ("superb 1 2 x\n", "line 1"),
        ("other 1 2 3\n", "none of"),
        ("superb 1 2 nan\n", "finite"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_vectors(tmp_path / "v.txt", ["superb"], 3)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("vectors.bin", b"2 3\nsuperb \xff\xfe\x00\x80", "no text"),
        ("vectors.txt.gz", gzip.compress(TEXT.encode() * 2000)[:40] + b"\xff" * 200, "cannot be read"),
        ("vectors.txt.gz", b"no gz at all", "cannot be read"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=words):
        read_vectors(tmp_path / name, ["superb"], 3)


def test_the_table_starts_from_them_and_training_works(data: Path, tmp_path: Path) -> None:
    words = Vocabulary.load(data / "vocab.json").words
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {' '.join(['0.25'] * 8)}\n" for word in words[:5]))
    settings = replace(SMALL, embeddings=str(file))
    task = Reviews(data, settings)
    try:
        model = task.make_model()
    finally:
        task.close()
    assert isinstance(model, RecurrentClassifier)
    assert bool((model.embedding.weight[2:7] == 0.25).all())
    assert not bool((model.embedding.weight[7:] == 0.25).any())
    assert run(data, tmp_path / "run", embeddings=str(file), max_steps=3)["steps"] == 3
