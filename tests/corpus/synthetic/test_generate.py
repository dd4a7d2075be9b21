"""The generated corpus: the same bytes for the same seed, its settings, and the accuracy of a perfect reader."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.phrases import BAD, GOOD
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import UsageError


def _rows(path: Path) -> list[tuple[str, float]]:
    return [(row["reviewText"], row["overall"]) for row in map(json.loads, path.read_text().splitlines())]


def _sense(text: str) -> bool:
    """Whether a reader who understands the review finds it positive."""
    said = re.findall(rf"(not |don't think the \w+ is )?(?:\w+ )?\b({'|'.join(GOOD + BAD)})\b", text)
    denied, word = said[-1]
    before = text[: text.rindex(word)].rsplit(".", maxsplit=1)[-1].rsplit("but", maxsplit=1)[-1]
    return (word in GOOD) != ("not " in before or "don't think" in before or bool(denied))


def test_a_perfect_reader_has_the_promised_accuracy(tmp_path: Path) -> None:
    result = generate(tmp_path / "r.jsonl", GenerateSettings(rows=6000, noise=0.1, negative_share=0.3))
    rows = _rows(tmp_path / "r.jsonl")
    right = sum(_sense(text) == (rating > 3) for text, rating in rows) / len(rows)
    assert result.bayes_accuracy == pytest.approx(0.9)
    assert right == pytest.approx(0.9, abs=0.015)
    assert sum(not _sense(text) for text, _ in rows) / len(rows) == pytest.approx(0.3, abs=0.03)
    assert result.rows == 6000 and result.bytes == (tmp_path / "r.jsonl").stat().st_size


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(tmp_path / name, GenerateSettings(rows=9000, seed=seed, duplicates=0.2))
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c


def test_duplicates_and_length(tmp_path: Path) -> None:
    generate(tmp_path / "r", GenerateSettings(rows=8000, duplicates=0.25, length=20))
    texts = [text for text, _ in _rows(tmp_path / "r")]
    assert 1 - len(set(texts)) / len(texts) == pytest.approx(0.25, abs=0.02)
    assert sum(len(text.split()) for text in texts) / len(texts) < 40
    common = Counter(word for text in texts for word in text.split()).most_common(50)
    assert common[0][1] > 5 * common[40][1]  # Zipf: few words make up most of the text


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"noise": 0.5}, {"duplicates": 2.0}, {"seed": -1}])
def test_invalid_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        GenerateSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["r.jsonl.gz", "r.json.ZST", "r.csv", "r.parquet"])
def test_a_suffix_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: generate writes plain JSON lines"):
        generate(tmp_path / name, GenerateSettings(rows=10))
    assert not list(tmp_path.iterdir())


def test_the_file_is_flushed_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: forced.append(os.fstat(handle).st_size))
    result = generate(tmp_path / "r.jsonl", GenerateSettings(rows=10))
    assert forced == [result.bytes]


def test_missing_folders_are_created(tmp_path: Path) -> None:
    made = generate(tmp_path / "new" / "folder" / "r.jsonl", GenerateSettings(rows=10))
    assert Path(made.out).read_bytes().count(b"\n") == 10
