"""Words from prepared data and from text: counted, numbered and cut into blocks."""

from __future__ import annotations

import collections
import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from helpers.corpora import make_reviews, write_json_lines
from hypothesis import given
from hypothesis import strategies as st

import tenor
from tenor.embedding import sources
from tenor.embedding.kernels.windows import BREAK
from tenor.embedding.sources import Blocks, TextWords, open_blocks, read_words
from tenor.errors import CorpusError, StoreError, UsageError
from tenor.store.reader import open_split


def texts_of(words: TextWords, blocks: Blocks) -> list[list[str]]:
    """The texts that the blocks hold, without those that are empty."""
    numbers = np.concatenate([blocks.block(number) for number in range(blocks.num_blocks)])
    texts: list[list[str]] = [[]]
    for number in numbers.tolist():
        if number == BREAK:
            texts.append([])
        else:
            texts[-1].append(words.words[number])
    return [text for text in texts if text]


def expected(texts: list[list[str]], min_count: int) -> tuple[dict[str, int], list[list[str]]]:
    counts = collections.Counter(word for text in texts for word in text)
    kept = {word: count for word, count in counts.items() if count >= min_count}
    return kept, [found for text in texts if (found := [word for word in text if word in kept])]


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "bb", "ccc", "dd", "e", "f"]), min_size=1, max_size=9), min_size=1, max_size=30
    )
)
def test_text_is_counted_and_cut(texts: list[list[str]]) -> None:
    texts = [["x", "y"], ["x", "y"], *texts]
    with pytest.MonkeyPatch.context() as patch, pytest.MonkeyPatch.context() as more:
        patch.setattr(sources, "READ_BYTES", 7)
        more.setattr(sources, "BLOCK_WORDS", 5)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(" ".join(text) for text in texts))
            file.flush()
            words, blocks = read_words(Path(file.name), 2, 0)
        with closing(blocks):
            counts, cut = expected(texts, 2)
            assert dict(zip(words.words, words.counts.tolist(), strict=True)) == counts
            assert list(words.counts) == sorted(words.counts, reverse=True)
            assert words.total == sum(map(len, texts))
            assert [word for text in texts_of(words, blocks) for word in text] == [
                word for text in cut for word in text
            ]


def test_lines_are_texts_and_packed_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "text.gz"
    file.write_bytes(gzip.compress(b"The cat sat.\nThe CAT ran\n\nthe dog", mtime=0))
    words, blocks = read_words(file, 1, 0)
    with closing(blocks):
        assert texts_of(words, blocks)[:2] == [["the", "cat", "sat"], ["the", "cat", "ran"]]


def test_only_the_most_frequent_words_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("a a a b b c c c c d")
    words, blocks = read_words(file, 1, 2)
    with closing(blocks):
        assert list(words.words) == ["c", "a"] and words.total == 10
        assert texts_of(words, blocks) == [["a", "a", "a", "c", "c", "c", "c"]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("prepared")
    tenor.prepare([write_json_lines(folder / "r.jsonl", make_reviews(300, seed=1))], folder / "data", workers=1)
    yield folder / "data"


def test_prepared_data_gives_its_training_reviews(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK_WORDS", 500)
    from tenor.preparation.tokeniser.vocabulary import Vocabulary

    names = ["", "?", *Vocabulary.load(data / "vocab.json").words]
    with open_split(data, "train") as split:
        tokens, lengths = split.gather(np.arange(len(split)))
    rows = np.split(tokens, np.cumsum(lengths)[:-1])
    texts = [[names[token] for token in row if token > 1] for row in rows]
    counts, cut = expected(texts, 3)
    words, blocks = read_words(data, 3, 0)
    with closing(blocks):
        assert dict(zip(words.words, words.counts.tolist(), strict=True)) == counts
        assert blocks.num_blocks > 3 and texts_of(words, blocks) == cut
        assert words.total == len(tokens)
        again = open_blocks({**blocks.describe(), "ranks": os.dup(blocks.describe()["ranks"])})
        with closing(again):
            assert texts_of(words, again) == cut


def test_unlabelled_reviews_are_read_after_the_training_reviews(tmp_path: Path) -> None:
    """Every review has two words of its own, which tell where the words of the vectors come from."""
    rows: list[dict[str, object]] = [{"text": f"Some own{n} also{n}", "rating": (None, 1, 5)[n % 3]} for n in range(90)]
    copies = [{"text": f"some OWN{n} also{n}", "rating": None} for n in range(90) if n % 3]  # of labelled ones
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*copies, *rows]))
    tenor.prepare([tmp_path / "r.jsonl"], tmp_path / "data", tenor.PrepareSettings(workers=1, unlabelled=True))
    held = {}
    for name in ("train", "valid", "test"):
        with open_split(tmp_path / "data", name) as split:
            held[name] = len(split)
    words, blocks = read_words(tmp_path / "data", 1, 0)
    with (
        closing(blocks),
        closing(open_blocks({**blocks.describe(), "ranks": os.dup(blocks.describe()["ranks"])})) as again,
    ):
        found = [int(text[1].removeprefix("own")) for text in texts_of(words, blocks)]
        assert texts_of(words, again) == texts_of(words, blocks)
    labelled, unlabelled = found[: held["train"]], found[held["train"] :]
    assert sorted(unlabelled) == list(range(0, 90, 3))
    assert len(set(labelled)) == held["train"] and all(n % 3 for n in labelled)
    assert held["valid"] and held["test"], "the test shows nothing"
    assert dict(zip(words.words, words.counts.tolist(), strict=True)) == {
        "some": len(found),
        **{f"{word}{n}": 1 for n in found for word in ("own", "also")},
    }
    assert words.total == 3 * len(found)


def test_reviews_without_any_rating_are_enough(tmp_path: Path) -> None:
    rows = ({"text": f"alpha beta {n}"} for n in range(9))
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tenor.prepare([tmp_path / "r.jsonl"], tmp_path / "data", tenor.PrepareSettings(workers=1, unlabelled=True))
    words, blocks = read_words(tmp_path / "data", 2, 0)
    with closing(blocks):
        assert texts_of(words, blocks) == [["alpha", "beta"]] * 9


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", UsageError, "has 0 words"),
        (b"word word word word word word", UsageError, "has 1 words that occur at least 5 times"),
        (b"a b c d", UsageError, "has 0 words that occur at least 5 times"),
        (b"\x00\x01\x02 garbage", CorpusError, "zero bytes"),
        (gzip.compress(b"packed\x00garbage", mtime=0), CorpusError, "line 1: is not text: it holds zero bytes"),
        (b"fine " * 300_000 + b"\x00", CorpusError, "zero bytes"),
        (b"fine fine\nbad \xff\xfe here", CorpusError, "line 2: invalid UTF-8"),
        (b"x" * 2_000_000, CorpusError, "line 1: a word of more than"),
        (b"\x1f\x8b\x08\x00broken", CorpusError, "damaged gz data"),
    ],
)
def test_what_is_not_text_is_refused(tmp_path: Path, content: bytes, error: type[Exception], message: str) -> None:
    file = tmp_path / "text"
    file.write_bytes(content)
    with pytest.raises(error, match=message):
        read_words(file, 5, 0)


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(CorpusError, match="is not an ordinary file"):
            read_words(path, 5, 0)


def test_a_folder_that_is_not_prepared_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not prepared data"):
        read_words(tmp_path, 5, 0)
    with pytest.raises(CorpusError, match="cannot be read"):
        read_words(tmp_path / "none", 5, 0)
