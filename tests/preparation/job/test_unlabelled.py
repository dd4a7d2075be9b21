"""Unlabelled rows through the whole job, compared with plain Python: rows, duplicates, vocabulary, and no leakage."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from helpers.command import call_tenor
from helpers.corpora import PLAIN, make_reviews, write_json_lines
from preparation.job.test_prepare import hashes
from preparation.reference import reference_tokens

from tenor.corpus.scanning import blocks
from tenor.errors import CorpusError
from tenor.preparation.job import pipeline
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages import mapping
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.progress import Silent
from tenor.store.manifest import ALL_SPLITS, SPLITS, Manifest
from tenor.store.reader import open_split
from tenor.store.verify import verify_data

Row = tuple[str, int | None]  # text, rating
KEEP = PrepareSettings(workers=1, unlabelled=True)


def make_rows(seed: int, count: int = 250) -> list[Row]:
    """Rows of which half have no rating, many texts occur several times, and some have no words."""
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(PLAIN, k=rng.randrange(2, 9))) + f" w{n % 37}" for n in range(count // 2)]
    spellings = (str.upper, str.title, lambda text: f"  {text}. ", str)
    rows: list[Row] = [
        (rng.choice(spellings)(rng.choice(texts)), rng.choice((None, None, None, 1, 3, 5))) for _ in range(count)
    ]
    classes: list[Row] = [(f"{word} {n}", rating) for word, rating in (("bad", 1), ("good", 5)) for n in range(9)]
    words = " ".join(sorted({word for text, _ in [*rows, *classes] for word in reference_tokens(text)}))
    return [*rows, *classes, ("...", None), ("", 5), (words, None)]  # the last row puts every word into the vocabulary


def write_rows(path: Path, rows: Sequence[Row]) -> Path:
    """JSON lines; a missing rating is null, an empty string or a missing key."""
    with path.open("w") as file:
        for number, (text, rating) in enumerate(rows):
            given: dict[str, Any] = {"rating": rating if rating is not None else (None, "")[number % 2]}
            file.write(json.dumps({"text": text, **(given if rating is not None or number % 3 else {})}) + "\n")
    return path


@dataclasses.dataclass
class Expected:
    labelled: Counter[tuple[str, int]]
    unlabelled: Counter[str]
    duplicates: int = 0
    neutral: int = 0
    empty: int = 0


def expect(rows: Sequence[Row], dedupe: bool) -> Expected:
    """What must become of the rows, text by text."""
    ratings: dict[str, list[int | None]] = defaultdict(list)
    found = Expected(Counter(), Counter())
    for text, rating in rows:
        ratings[" ".join(reference_tokens(text))].append(rating)
    found.empty = len(ratings.pop("", []))
    for text, given in ratings.items():
        rated = sorted(rating for rating in given if rating is not None)
        kept = rated or given
        if dedupe:
            kept = [max(rated, key=rated.count)] if rated else [None]
        found.duplicates += len(given) - len(kept)
        for rating in kept:
            if rating is None:
                found.unlabelled[text] += 1
            elif rating == 3:
                found.neutral += 1
            else:
                found.labelled[text, int(rating > 3)] += 1
    return found


def texts(folder: Path, split: str) -> list[tuple[str, int]]:
    """The rows of a split as (text, label), in their order."""
    words = ["", "?unknown?", *Vocabulary.load(folder / "vocab.json").words]
    with open_split(folder, split) as rows:
        tokens, lengths = rows.gather(np.arange(len(rows)))
        parts = np.split(tokens, np.cumsum(lengths)[:-1]) if len(rows) else []
        return [
            (" ".join(words[token] for token in part), int(label))
            for part, label in zip(parts, rows.labels, strict=True)
        ]


@pytest.mark.parametrize("dedupe", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_kept_and_counted_as_plain_python_does(tmp_path: Path, seed: int, dedupe: bool) -> None:
    rows = make_rows(seed)
    settings = dataclasses.replace(KEEP, dedupe=dedupe)
    result = prepare(write_rows(tmp_path / "r.jsonl", rows), tmp_path / "out", settings)
    expected = expect(rows, dedupe)
    assert expected.duplicates and expected.neutral and len(expected.unlabelled) > 10, "the test shows nothing"
    stored = {name: texts(tmp_path / "out", name) for name in ALL_SPLITS}
    assert Counter(row for name in SPLITS for row in stored[name]) == expected.labelled
    assert Counter(text for text, _ in stored["unlabelled"]) == expected.unlabelled
    assert {label for _, label in stored["unlabelled"]} == {255}
    assert (result.rows_read, result.duplicates) == (len(rows), expected.duplicates)
    assert (result.dropped, result.rejected) == ({"neutral": expected.neutral, "empty": expected.empty}, {})
    assert result.rows_kept == expected.labelled.total() + expected.unlabelled.total()
    assert result.rows_read == result.rows_kept + result.duplicates + sum(result.dropped.values())
    unlabelled = result.splits["unlabelled"]
    assert (unlabelled["rows"], unlabelled["classes"]) == (expected.unlabelled.total(), {})
    assert unlabelled["tokens"] == sum(len(text.split()) for text in expected.unlabelled.elements())
    info = verify_data(tmp_path / "out").splits["unlabelled"]
    assert (info.rows, info.class_counts) == (unlabelled["rows"], ())


@pytest.mark.parametrize("dedupe", [True, False])
def test_no_text_of_valid_or_test_is_unlabelled(tmp_path: Path, dedupe: bool) -> None:
    """Every labelled text has unlabelled copies, in other spellings, before and after it."""
    reviews = make_reviews(150)
    copies: list[Row] = [(spelling(review.text), None) for review in reviews for spelling in (str.upper, str.title)]
    rows: list[Row] = [*copies[:150], *reviews, *copies[150:], ("alone and unlabelled", None)]
    settings = dataclasses.replace(KEEP, dedupe=dedupe, valid_share=0.3, test_share=0.3)
    result = prepare(write_rows(tmp_path / "r.jsonl", rows), tmp_path / "out", settings)
    assert result.splits["valid"]["rows"] > 20 and result.splits["test"]["rows"] > 20
    assert [text for text, _ in texts(tmp_path / "out", "unlabelled")] == ["alone and unlabelled"]
    assert result.duplicates == 300


def test_the_vocabulary_counts_training_and_unlabelled_rows(tmp_path: Path) -> None:
    reviews = make_reviews(200)
    unlabelled: list[Row] = [(f"fresh words {n % 5} fresh {'rare' if n < 4 else 'often'}", None) for n in range(60)]
    raw = write_rows(tmp_path / "r.jsonl", [*reviews, *unlabelled])
    settings = dataclasses.replace(KEEP, vocab_size=40, dedupe=False, valid_share=0.3, test_share=0.3)
    prepare(raw, tmp_path / "all", dataclasses.replace(settings, vocab_size=10_000))
    held: Counter[str] = Counter()
    for name in ("train", "unlabelled"):  # these texts have no unknown words, because all their words were counted
        held.update(word for text, _ in texts(tmp_path / "all", name) for word in text.split())
    ranked = sorted(held, key=lambda word: (-held[word], word.encode()))
    assert "?unknown?" not in held and "fresh" in ranked[:38]
    assert list(Vocabulary.load(tmp_path / "all" / "vocab.json").words) == ranked
    prepare(raw, tmp_path / "some", settings)
    assert list(Vocabulary.load(tmp_path / "some" / "vocab.json").words) == ranked[:38]


def test_any_division_of_the_work_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_rows(7, 400)
    prepare(write_rows(tmp_path / "all.jsonl", rows), tmp_path / "one", KEEP)
    files = [write_rows(tmp_path / f"{part}.jsonl", rows[part::3]) for part in range(3)]
    prepare(files[::-1], tmp_path / "two", dataclasses.replace(KEEP, workers=2))
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert "unlabelled/00000.h5" in hashes(tmp_path / "one")
    monkeypatch.setattr(mapping, "SLICE_TOKENS", 500)
    monkeypatch.setattr(blocks, "BLOCK", 2048)
    monkeypatch.setattr(pipeline, "TEXT_PART_BYTES", 8000)  # several text parts
    prepare(files, tmp_path / "parts", KEEP)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "parts")


def test_the_option_changes_nothing_for_labelled_rows(tmp_path: Path) -> None:
    raw = write_json_lines(tmp_path / "r.jsonl", make_reviews(100))
    prepare(raw, tmp_path / "off", PrepareSettings(workers=1))
    prepare(raw, tmp_path / "on", KEEP)
    off, on = hashes(tmp_path / "off"), hashes(tmp_path / "on")
    assert off.pop("manifest.json") != on.pop("manifest.json")
    assert off == on
    assert Manifest.load(tmp_path / "on").splits["unlabelled"].rows == 0
    assert list(Manifest.load(tmp_path / "off").splits) == sorted(SPLITS)
    values = json.loads((tmp_path / "on" / "manifest.json").read_bytes())
    del values["splits"]["unlabelled"]
    assert values == json.loads((tmp_path / "off" / "manifest.json").read_bytes())


def test_the_key_of_a_job_without_the_option_stays() -> None:
    assert "unlabelled" not in PrepareSettings().result_fields
    assert "unlabelled" in KEEP.result_fields


class Warnings(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def warn(self, line: str) -> None:
        self.said.append(line)


def test_data_without_any_rating_is_for_word_vectors_only(tmp_path: Path) -> None:
    rows: list[Row] = [(f"some text {n}", None) for n in range(20)]
    progress = Warnings()
    result = prepare(write_rows(tmp_path / "r.jsonl", rows), tmp_path / "out", KEEP, progress)
    assert [split["rows"] for split in result.splits.values()] == [0, 0, 0, 20]
    assert any("no row has a rating" in said for said in progress.said)
    rated = write_rows(tmp_path / "s.jsonl", [*rows, ("one more", 5)])
    with pytest.raises(CorpusError, match=r"no training row has a class|have only one class, positive"):
        prepare(rated, tmp_path / "rated", KEEP)


def test_the_command_shows_unlabelled_rows(tmp_path: Path) -> None:
    raw = write_rows(tmp_path / "r.jsonl", [*make_reviews(60), ("first", None), ("second", None), ("Second", None)])
    shown = call_tenor("prepare", raw, "--out", tmp_path / "text", "--unlabelled", "--workers", "1").ok().stdout
    assert "  kept        62  unlabelled 2\n" in shown and "\nunlabelled     2       2         –         –\n" in shown
    result = (
        call_tenor("prepare", raw, "--out", tmp_path / "json", "--unlabelled", "--workers", "1", "--json").ok().json
    )
    assert result["splits"]["unlabelled"] == {"rows": 2, "tokens": 2, "classes": {}, "shards": 1}
    assert (result["rows_read"], result["rows_kept"], result["duplicates"]) == (63, 62, 1)
    with h5py.File(tmp_path / "json" / "unlabelled" / "00000.h5") as h5:
        assert h5["labels"][()].tolist() == [255, 255] and len(h5["offsets"]) == 3
