"""The whole job on small corpora: rows kept, counted and split; the same bytes with any number of workers."""

from __future__ import annotations

import contextlib
import hashlib
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.corpora import WRITERS, Review, make_reviews, write_csv, write_fasttext, write_json_lines
from preparation.reference import reference_tokens

from tenor.corpus.scanning import blocks
from tenor.errors import CorpusError, StoreError, UsageError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages import mapping
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.store.manifest import SPLITS, Manifest
from tenor.store.reader import open_split

numbers = mapping.slice_numbers
ONE = PrepareSettings(workers=1)
ALL = PrepareSettings(workers=1, valid_share=0.0, test_share=0.0)


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("job.json", "rejects.jsonl")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_parts(folder: Path, reviews: list[Review], parts: int) -> list[Path]:
    folder.mkdir()
    return [write_json_lines(folder / f"{part}.jsonl", reviews[part::parts]) for part in range(parts)]


def rows(folder: Path) -> Counter[tuple[str, int]]:
    """Every stored row as (its words, its label)."""
    words = ["", "?unknown?", *Vocabulary.load(folder / "vocab.json").words]
    found: Counter[tuple[str, int]] = Counter()
    for name in SPLITS:
        with open_split(folder, name) as split:
            tokens, lengths = split.gather(np.arange(len(split)))
            ends = np.cumsum(lengths)
            for end, length, label in zip(ends, lengths, split.labels, strict=True):
                found[" ".join(words[t] for t in tokens[end - length : end]), int(label)] += 1
    return found


@pytest.mark.parametrize("kind", list(WRITERS))
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_every_format_keeps_every_row(tmp_path: Path, kind: str, packed: str) -> None:
    reviews = make_reviews(300)
    result = prepare(WRITERS[kind](tmp_path / f"r.{kind}{packed}", reviews), tmp_path / "out", ALL)
    assert result.rows_read == result.rows_kept == 300
    expected = Counter((" ".join(reference_tokens(r.text)), int(r.rating > 3)) for r in reviews)
    assert rows(tmp_path / "out") == expected


def test_duplicates_neutrals_and_rejects_add_up(tmp_path: Path) -> None:
    reviews = [
        *make_reviews(200),
        *[Review("Same  thing, twice!", rating) for rating in (1, 5, 5)],
        *[Review("same thing twice !", rating) for rating in (1, 1)],  # 1 three times: the most frequent
        *[Review("a tie", rating) for rating in (5, 1)],  # the smaller
        *[Review("mostly three", rating) for rating in (3, 3, 5)],  # neutral after the vote
        Review("...", 5),
        Review("neither", 3),
    ]
    write_json_lines(tmp_path / "r.jsonl", reviews)
    result = prepare([tmp_path / "r.jsonl"], tmp_path / "out", ONE)
    assert (result.rows_read, result.rows_kept, result.duplicates) == (212, 202, 7)
    assert (result.dropped, result.rejected) == ({"neutral": 2, "empty": 1}, {})
    found = rows(tmp_path / "out")
    assert found["same thing twice !", 0] == 1 and found["a tie", 0] == 1
    assert (tmp_path / "out" / "rejects.jsonl").read_text() == ""


def test_without_dedupe_every_row_stays_and_no_text_is_in_two_splits(tmp_path: Path) -> None:
    reviews = make_reviews(100) * 3
    write_json_lines(tmp_path / "r.jsonl", reviews)
    result = prepare([tmp_path / "r.jsonl"], tmp_path / "out", PrepareSettings(workers=1, dedupe=False))
    assert result.rows_kept == 300
    assert set(rows(tmp_path / "out").values()) == {3}
    for info in Manifest.load(tmp_path / "out").splits.values():
        assert info.rows % 3 == 0


def test_any_number_of_workers_and_files_gives_the_same_bytes(tmp_path: Path) -> None:
    reviews = make_reviews(500)
    write_json_lines(tmp_path / "all.jsonl", reviews)
    write_csv(tmp_path / "b.csv", reviews[170:])
    prepare([tmp_path / "all.jsonl"], tmp_path / "one", ONE)
    for workers in (2, 4):
        files = [tmp_path / "b.csv", *write_parts(tmp_path / str(workers), reviews[:170], workers)]
        prepare(files, tmp_path / f"out{workers}", PrepareSettings(workers=workers))
        assert hashes(tmp_path / "one") == hashes(tmp_path / f"out{workers}")


def test_a_packed_file_larger_than_memory_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = [*make_reviews(400), *make_reviews(300), Review("…", 5), Review("so so", 3)]
    plain, packed = (write_json_lines(tmp_path / name, reviews) for name in ("r.jsonl", "r.jsonl.gz"))
    expected = prepare([plain], tmp_path / "plain", ONE)
    monkeypatch.setattr(mapping, "SLICE_TOKENS", 2000)
    monkeypatch.setattr(blocks, "BLOCK", 4096)
    put_aside = []
    monkeypatch.setattr(mapping, "slice_numbers", lambda mapped: put_aside.append(found := numbers(mapped)) or found)
    result = prepare([packed], tmp_path / "packed", ONE)
    assert len(put_aside[0]) > 5, "one slice held all: the test shows nothing"
    assert hashes(tmp_path / "packed") == hashes(tmp_path / "plain")
    assert (result.rows_read, result.duplicates, result.dropped) == (702, 300, {"neutral": 1, "empty": 1})
    assert expected.manifest_sha256 == result.manifest_sha256


@contextlib.contextmanager
def few_descriptors(count: int) -> Iterator[None]:
    """Allow about `count` more open files."""
    held = len(list(Path("/proc/self/fd").iterdir()))
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + count, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))


def test_there_may_be_more_files_than_can_be_open_at_a_time(tmp_path: Path) -> None:
    files = write_parts(tmp_path / "in", make_reviews(300), 100)
    with few_descriptors(50):
        assert prepare(files, tmp_path / "out", ONE).rows_kept == 300


def test_words_are_numbered_by_falling_frequency_over_training_rows(tmp_path: Path) -> None:
    reviews = make_reviews(300)
    write_json_lines(tmp_path / "r.jsonl", reviews)
    prepare([tmp_path / "r.jsonl"], tmp_path / "out", PrepareSettings(workers=1, vocab_size=40))
    vocabulary = Vocabulary.load(tmp_path / "out" / "vocab.json")
    assert len(vocabulary) == 40
    with open_split(tmp_path / "out", "train") as split:
        tokens, _ = split.gather(np.arange(len(split)))
    counts = np.bincount(tokens, minlength=40)[2:]
    pairs = list(zip((-counts).tolist(), vocabulary.words, strict=True))
    assert pairs == sorted(pairs) and tokens.min() == 1


def test_encoder_gives_the_ids_of_prepare(tmp_path: Path) -> None:
    reviews = make_reviews(200)
    write_json_lines(tmp_path / "r.jsonl", reviews)
    prepare([tmp_path / "r.jsonl"], tmp_path / "out", PrepareSettings(workers=1, max_length=12, vocab_size=50))
    manifest = Manifest.load(tmp_path / "out")
    vocabulary = Vocabulary.load(tmp_path / "out" / "vocab.json")
    encode = Encoder(vocabulary, manifest.tokeniser, manifest.max_length)
    tokens, lengths = encode([review.text for review in reviews])
    mine = Counter(tuple(row.tolist()) for row in np.split(tokens, np.cumsum(lengths)[:-1]))
    stored: Counter[tuple[int, ...]] = Counter()
    for name in SPLITS:
        with open_split(tmp_path / "out", name) as split:
            t, n = split.gather(np.arange(len(split)))
            stored.update(tuple(row.tolist()) for row in np.split(t, np.cumsum(n)[:-1]))
    assert mine == stored
    assert encode(["", "zzz"])[1].tolist() == [0, 1] and encode(["zzz"])[0].tolist() == [1]


def test_encoder_with_stop_words_that_the_vocabulary_holds_too() -> None:
    words, stopwords = ["the", "film", "and", "story", "was", "good"], ["and", "not", "the"]
    encode = Encoder(Vocabulary(words), {"clean": "words", "marks": True, "stopwords": stopwords}, 100)
    ids = {word: number + 2 for number, word in enumerate(words)}
    texts = ["The film and the story", "was not good", "and the", "a good film"]
    expected = [[ids.get(word, 1) for word in text.lower().split() if word not in stopwords] for text in texts]
    tokens, lengths = encode(texts)
    assert lengths.tolist() == [len(row) for row in expected]
    assert tokens.tolist() == [token for row in expected for token in row]


def test_the_same_job_again_is_not_done_twice_and_another_is_refused(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", make_reviews(50))
    first = prepare([path], tmp_path / "out", ONE)
    assert prepare([path], tmp_path / "out", ONE) == first
    with pytest.raises(UsageError, match="exists already"):
        prepare([path], tmp_path / "out", PrepareSettings(workers=1, max_length=9))


def test_the_same_names_with_other_content_are_another_job(tmp_path: Path) -> None:
    path, words = write_json_lines(tmp_path / "r.jsonl", make_reviews(50)), tmp_path / "words.txt"
    words.write_text("the")
    other = prepare([path], tmp_path / "other", PrepareSettings(workers=1, vocab_size=40)).out
    stopped, borrowed = PrepareSettings(workers=1, stopwords=str(words)), PrepareSettings(workers=1, vocab=other)
    for name, settings in (("stopped", stopped), ("borrowed", borrowed)):
        assert prepare([path], tmp_path / name, settings) == prepare([path], tmp_path / name, settings)
    words.write_text("the and")
    Vocabulary(["film"]).save(tmp_path / "other" / "vocab.json")
    for name, settings in (("stopped", stopped), ("borrowed", borrowed)):
        with pytest.raises(UsageError, match="exists already"):
            prepare([path], tmp_path / name, settings)


def test_a_finished_job_is_judged_by_the_limit_given_now(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", [*make_reviews(50), Review("?!…", 5), Review("bad", "x")])  # type: ignore[arg-type]
    prepare([path], tmp_path / "out", PrepareSettings(workers=1, max_rejects=0.5))
    with pytest.raises(CorpusError, match=r"1 of 52 rows cannot be used .bad rating 1., the first in line 52"):
        prepare([path], tmp_path / "out", ONE)
    assert prepare([path], tmp_path / "out", PrepareSettings(workers=1, max_rejects=0.02)).rows_kept == 51  # as it says
    (tmp_path / "out" / "rejects.jsonl").write_text("")
    with pytest.raises(StoreError, match=r"rejects.jsonl: does not list .*prepare again"):
        prepare([path], tmp_path / "out", ONE)


def test_fasttext_labels_beside_stars_are_refused_unless_said(tmp_path: Path) -> None:
    reviews = make_reviews(60)
    files = [write_fasttext(tmp_path / "a.ft", reviews[:30]), write_json_lines(tmp_path / "b.jsonl", reviews[30:])]
    with pytest.raises(UsageError, match="2 would be positive in one file and negative in the other"):
        prepare(files, tmp_path / "out", ONE)
    assert prepare(files, tmp_path / "out", PrepareSettings(workers=1, negative="1", positive="2,4,5")).rows_kept > 0


@pytest.mark.parametrize(
    ("name", "content", "settings", "told"),
    [
        ("r.jsonl", None, {}, "cannot be read"),
        ("r.jsonl", b"", {}, "is empty"),
        ("r.bin", b"\x00\x01\x02 what is this", {}, "not have a known format"),
        ("r.csv", b"body,stars\nfine,5\n", {}, "body, stars"),
        ("r.csv", b"text,rating\nfine,5\n", {"text_column": "words"}, "text, rating"),
        ("r.jsonl", b'{"text": "a", "rating": 5}\n{"text": "b", "rating": 4}\n', {}, "only one class"),
        ("r.jsonl", b'{"text": "\xff\xfe", "rating": 5}\n', {}, "invalid UTF-8"),
        ("r.jsonl.gz", b"not gz at all", {}, "not gz data"),
        ("r.csv", b"text,rating\n", {}, "no rows"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(
    tmp_path: Path, name: str, content: bytes | None, settings: dict[str, str], told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=told):
        prepare([tmp_path / name], tmp_path / "out", PrepareSettings(workers=1, **settings))  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ([name] if content is not None else [])


def test_a_folder_that_is_no_prepared_data(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not prepared data"):
        Manifest.load(tmp_path)
