"""Word vectors from a file become the initial rows of the embedding."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.training import SMALL, run

import tenor
from tenor.embedding.exchange import FORMATS, write_file
from tenor.embedding.subwords import Shape
from tenor.embedding.vectors import Subwords, Vectors, save_vectors
from tenor.errors import UsageError
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.store.reader import open_split
from tenor.training.tasks.pretrained import read_vectors
from tenor.training.tasks.reviews import Reviews

TEXT = "3 3\nsuperb 1 2 3\nunheard 4 5 6\nawful -1 0.5 1e-3\n"


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_vectors_are_matched_to_their_words(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    found = read_vectors(file, ["awful", "plot", "superb"], 3)
    assert found.places.tolist() == [0, 2]
    np.testing.assert_allclose(found.vectors, [[-1, 0.5, 1e-3], [1, 2, 3]])


@pytest.mark.parametrize("kind", ["folder", *FORMATS])
def test_a_negated_word_without_a_vector_gets_that_of_the_plain_word(tmp_path: Path, kind: str) -> None:
    path, rows = tmp_path / "vectors", np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
    vectors = Vectors(("superb", "awful", "¬awful"), rows)
    if kind == "folder":
        path.mkdir()
        save_vectors(path, vectors, vars(tenor.EmbedSettings(dim=3)), {"words": 9, "loss": 0.1})
    else:
        write_file(path, vectors, kind)
    found = read_vectors(path, ["¬superb", "plot", "¬plot", "¬awful", "awful"], 3)
    assert found.places.tolist() == [0, 3, 4]
    np.testing.assert_array_equal(found.vectors, rows[[0, 2, 1]])


def some_vectors(subwords: Subwords | None = None) -> Vectors:
    rows = np.array([[1, 2, 3], [4, 5, 6], [-1, 0.5, 1e-3]], np.float32)
    return Vectors(("superb", "unheard", "awful"), rows, subwords)


@pytest.mark.parametrize("kind", ["folder", *FORMATS])
def test_every_kind_of_vectors_is_accepted(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "vectors"
    if kind == "folder":
        path.mkdir()
        save_vectors(path, some_vectors(), vars(tenor.EmbedSettings(dim=3)), {"words": 9, "loss": 0.1})
    else:
        write_file(path, some_vectors(), kind)
    found = read_vectors(path, ["awful", "plot", "superb"], 3)
    assert found.places.tolist() == [0, 2]
    np.testing.assert_array_equal(found.vectors, some_vectors().matrix[[2, 0]])


def test_words_without_a_vector_get_one_from_their_ngrams(tmp_path: Path) -> None:
    """The reference computes the n-grams of `<plot>` and their FNV-1a hashes by hand."""
    table = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    save_vectors(
        tmp_path,
        some_vectors(Subwords(Shape(3, 4, 50), table)),
        vars(tenor.EmbedSettings(dim=3)),
        {"words": 9, "loss": 0.1},
    )
    found = read_vectors(tmp_path, ["awful", "plot"], 3)
    ngrams = [b"<pl", b"plo", b"lot", b"ot>", b"<plo", b"plot", b"lot>"]
    codes = []
    for ngram in ngrams:
        code = 2166136261
        for letter in ngram:
            code = (code ^ letter) * 16777619 % 2**32
        codes.append(code % 50)
    assert found.places.tolist() == [0, 1]
    np.testing.assert_allclose(found.vectors[1], table[codes].mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("superb 1 2\n", "vectors of 2 numbers, but embedding_dim is 3; use embedding_dim 2"),
        ("superb 1 2 x\n", "line 1"),
        ("other 1 2 3\n", "none of"),
        ("superb 1 2 nan\n", "finite"),
        ("", "not a file of word vectors"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_vectors(tmp_path / "v.txt", ["superb"], 3)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("vectors.bin", b"2 3\nsuperb \xff\xfe\x00\x80", "ends within"),
        ("vectors.txt.gz", gzip.compress(TEXT.encode() * 2000)[:40] + b"\xff" * 200, "cannot be read"),
        ("vectors.txt.gz", b"no gz at all", "not a file of word vectors|is not a word"),
    ],
)
def test_files_that_are_damaged_are_refused(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=words):
        read_vectors(tmp_path / name, ["superb"], 3)


def write_vectors(data: Path, file: Path, count: int) -> list[str]:
    """Vectors of 0.25 for the first words of the data; returns all its words."""
    words = list(Vocabulary.load(data / "vocab.json").words)
    file.write_text("".join(f"{word} {' '.join(['0.25'] * 8)}\n" for word in words[:count]))
    return words


def test_missing_words_are_reported_with_their_share_of_the_tokens(data: Path, tmp_path: Path) -> None:
    words = write_vectors(data, tmp_path / "v", 5)
    said: list[str] = []
    progress = SimpleNamespace(**{name: lambda *_: None for name in ("start", "advance", "finish", "warn")})
    progress.say = said.append
    settings = replace(SMALL, embeddings=str(tmp_path / "v"), max_steps=3)
    result = tenor.train(data, tmp_path / "run", settings, progress).as_dict()  # type: ignore[arg-type]
    with open_split(data, "train") as train:
        tokens, _ = train.gather(np.arange(len(train)))
    known, missing = np.isin(tokens, range(2, 7)).sum(), (tokens >= 7).sum()
    assert result["missing_words"] == len(words) - 5
    assert result["missing_tokens"] == pytest.approx(missing / (known + missing))
    assert any(
        f"vectors for 5 words of the data; the {len(words) - 5:,} others start at random" in line for line in said
    )


def test_the_embedding_starts_from_the_vectors(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    write_vectors(data, file, 5)
    settings = replace(SMALL, embeddings=str(file))
    task = Reviews(data, settings)
    try:
        model = task.make_model()
    finally:
        task.close()
    assert model.deep is not None
    assert torch.allclose(model.deep.embedding.weight[2:7], torch.tensor(0.2))  # 0.25 in the file, then scaled
    assert not bool((model.deep.embedding.weight[7:] == 0.2).any())
    assert run(data, tmp_path / "run", embeddings=str(file), max_steps=3)["steps"] == 3
