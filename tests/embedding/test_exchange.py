"""Vectors in the formats of other programs, and hostile files of that kind."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tenor.embedding.exchange import FORMATS, read_file, write_file
from tenor.embedding.vectors import Vectors
from tenor.errors import UsageError


def some(num_words: int = 50, dim: int = 7) -> Vectors:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(num_words, dim)).astype(np.float32)
    matrix[0, :7] = [1e-30, -1e30, 0, 1, 123456.789, -0.1, 3.4e38][:dim]
    return Vectors(("größe", "日本", "a\u2019b", *(f"w{n}" for n in range(num_words - 3))), matrix)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dim", [7, 1000])
def test_a_round_trip_keeps_every_bit(tmp_path: Path, kind: str, dim: int) -> None:
    file, vectors = tmp_path / "v", some(dim=dim)
    write_file(file, vectors, kind)
    found = read_file(file)
    assert found.words == vectors.words and found.matrix.tobytes() == vectors.matrix.tobytes()


@pytest.mark.parametrize("kind", FORMATS)
def test_gensim_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path, kind: str) -> None:
    keyed = pytest.importorskip("gensim.models.keyedvectors").KeyedVectors
    vectors, is_binary = some(), kind == "word2vec-binary"
    write_file(tmp_path / "ours", vectors, kind)
    theirs = keyed.load_word2vec_format(str(tmp_path / "ours"), binary=is_binary)
    assert tuple(theirs.index_to_key) == vectors.words
    np.testing.assert_allclose(theirs.vectors, vectors.matrix, rtol=1e-6)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=is_binary)
    found = read_file(tmp_path / "theirs")
    assert found.words == vectors.words
    np.testing.assert_allclose(found.matrix, vectors.matrix, rtol=1e-6)


def test_text_without_a_header_and_packed_text_are_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("a 1 2\nb 3 4\n")
    (tmp_path / "v.gz").write_bytes(gzip.compress(b"2 2\na 1 2\nb 3 4\n"))
    for name in ("plain", "v.gz"):
        found = read_file(tmp_path / name)
        assert found.words == ("a", "b") and found.matrix.tolist() == [[1, 2], [3, 4]]


def test_many_words_in_binary_take_no_longer_than_their_bytes(tmp_path: Path) -> None:
    vectors = Vectors(tuple(f"w{n}" for n in range(20_000)), np.ones((20_000, 20), np.float32))
    write_file(tmp_path / "v", vectors, "word2vec-binary")
    assert read_file(tmp_path / "v").words == vectors.words


def test_a_word_that_comes_twice_keeps_its_first_vector(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("3 2\na 1 2\na 3 4\nb 5 6\n")
    found = read_file(tmp_path / "v")
    assert found.words == ("a", "b") and found.matrix.tolist() == [[1, 2], [5, 6]]


def test_only_some_words_are_kept_but_all_are_checked(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("3 2\na 1 2\nb 3 4\nc 5 6\n")
    found = read_file(tmp_path / "v", {"c", "a", "x"})
    assert found.words == ("a", "c") and found.matrix.tolist() == [[1, 2], [5, 6]]
    assert read_file(tmp_path / "v", set()).matrix.shape == (0, 2)
    (tmp_path / "v").write_text("2 2\na 1 2\nb 3 nan\n")
    with pytest.raises(UsageError, match="word 2 has numbers that are not finite"):
        read_file(tmp_path / "v", {"a"})


def test_the_memory_follows_the_size_of_the_file(tmp_path: Path) -> None:
    """Not what the header promises, and not an object per number."""
    num_words, dim = 20_000, 50
    vectors = Vectors(tuple(f"w{n}" for n in range(num_words)), np.ones((num_words, dim), np.float32))
    write_file(tmp_path / "v", vectors, "word2vec-binary")
    header = f"{num_words} {dim}\n".encode()
    lie = (tmp_path / "v").read_bytes().replace(header, f"{num_words * 2} {dim}\n".encode(), 1)
    (tmp_path / "lie").write_bytes(lie)
    tracemalloc.start()
    try:
        read_file(tmp_path / "v")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with pytest.raises(UsageError, match="has 20,000 words, its header says 40,000"):
            read_file(tmp_path / "lie")
        _, most_of_lie = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max(most, most_of_lie) < 2.5 * 4 * num_words * dim


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1000000000000 300\nword 1 2\n", "header promises 1,000,000,000,000 words"),
        (b"2 1000000000\nword 1 2\n", "header promises"),
        (b"60000000 300\nword 1 2\n", "header promises 60,000,000 words of 300 numbers"),
        (b"2 2\na 1 2\n", "has 1 words, its header says 2"),
        (b"1 2\na 1 2\nb 3 4\n", "has more words than its header says"),
        (b"2 2\na 1 2\nb 3\n", "line 3 has 1 numbers, not 2"),
        (b"2 2\na 1 2\nb 3 x\n", "line 3 is not a word and 2 numbers"),
        (b"2 2\na 1 2\nb nan 4\n", "not finite"),
        (b"2 2\na 1 2\nb 3 inf\n", "not finite"),
        (b"a 1 2\nb 3\n", "line 2 has 1 numbers, not 2"),
        (b"", "is not a file of word vectors"),
        (b"\x00\x01\x02\x03", "is not a file of word vectors"),
        (b"2 2\n" + b"a " + b"\x00" * 8 + b"b " + b"\x00" * 3, "ends within a word's vector"),
        (b"2 2\n" + b"\xff " + b"\x00" * 8 + b"b " + b"\x00" * 8, "a word that is not UTF-8"),
        (b"2 2\n", "has no words after its header|ends within|cannot hold"),
        (b"\x1f\x8b\x08\x00 broken", "cannot be read"),
        (b"2 2\na 1 2\n\xff\xfe 3 4\n", "line 3 is not a word and 2 numbers"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "v"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_file(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none: does not exist"):
        read_file(tmp_path / "none")
