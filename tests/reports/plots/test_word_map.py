"""The map of words: what it shows, how a classifier colours it, and what is refused."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import call_tenor
from helpers.runs import write_run

import tenor
from tenor.embedding.vectors import Vectors, save_vectors
from tenor.errors import RunError, UsageError
from tenor.reports.plots.word_map import draw_map
from tenor.reports.vectors_data import holds_vectors, word_sentiments
from tenor.runtime.model import Prediction

WORDS = ("good", "great", "bad", "awful", "film", "a<b", "$x$")
SETTINGS = {"model": "skipgram", "window": 5, "negative": 15, "epochs": 3, "seed": 0}


@dataclass(frozen=True)
class Opinions:
    """A classifier whose opinions are known: how likely the last of three classes is, and the first otherwise."""

    known: dict[str, float]
    classes: tuple[str, ...] = ("negative", "neutral", "positive")

    def probabilities(self, texts: list[str]) -> np.ndarray:
        return np.array([[1 - self.known.get(text, 0.9), 0.0, self.known.get(text, 0.9)] for text in texts])

    def predict(self, texts: list[str]) -> list[Prediction]:
        return [Prediction("positive", 1.0, sum(word in self.known for word in text.split())) for text in texts]


OPINIONS: Any = Opinions({"good": 0.9, "great": 1.0, "bad": 0.2, "awful": 0.0, "film": 0.5})


def some(words: tuple[str, ...] = WORDS) -> Vectors:
    return Vectors(words, np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vectors").mkdir()
    save_vectors(tmp_path / "vectors", some(), SETTINGS, {"words": 70, "loss": 0.25})
    return tmp_path / "vectors"


def colours(svg: str) -> dict[str, str]:
    """The theme colour of each word."""
    found = re.findall(r"<text[^>]*fill: var[(]--([a-z]+)[)][^>]*>([^<]*)</text>", svg)
    return {word: colour for colour, word in found}


def test_words_have_the_colour_of_their_sentiment() -> None:
    sentiments = word_sentiments(OPINIONS, WORDS)
    np.testing.assert_allclose(sentiments[:5], [0.8, 1.0, -0.6, -1.0, 0.0], atol=1e-6)
    assert np.isnan(sentiments[5:]).all(), "words that the classifier does not know"
    drawing = draw_map(some(), sentiments)
    found = colours(drawing.svg)
    assert {word: found[word] for word in ("good", "great", "bad", "awful", "film", "a&lt;b", "$x$")} == {
        **dict.fromkeys(("good", "great"), "a"),
        **dict.fromkeys(("bad", "awful"), "b"),
        **dict.fromkeys(("film", "a&lt;b", "$x$"), "faint"),
    }
    assert drawing.caption.endswith("most negative: awful, bad; most positive: great, good.")


def test_negated_words_have_the_sentiment_that_they_have_after_a_negator() -> None:
    opinions: Any = Opinions({"good": 0.9, "not": 0.5, "not good": 0.1})
    sentiments = word_sentiments(opinions, ["good", "¬good", "¬unheard", "not"])
    np.testing.assert_allclose(sentiments, [0.8, -0.8, np.nan, 0.0], atol=1e-6)


def test_a_map_without_a_classifier_has_one_colour() -> None:
    drawing = draw_map(some(), None)
    assert {colours(drawing.svg)[word] for word in ("good", "bad", "film")} == {"ink"}
    assert "classifier" not in drawing.caption


def test_only_the_commonest_words_are_drawn() -> None:
    drawing = draw_map(some(tuple(f"w{n}" for n in range(400))), None)
    assert drawing.title == "Map of the 300 commonest words"
    assert {f"w{n}" for n in range(300)} <= set(colours(drawing.svg)) and "w300" not in colours(drawing.svg)


def test_the_command_knows_vectors_from_runs(folder: Path, tmp_path: Path) -> None:
    result = call_tenor("report", str(folder), "--json").ok().json
    page = (folder / "report.html").read_text()
    assert result["report"] == str(folder / "report.html") and "Map of the 7 commonest words" in page
    assert "a&lt;b" in page and "<b" not in page.replace("<body", "") and "0.25" in page
    assert "config.json" in call_tenor("report", str(folder), str(tmp_path)).failed(1)


def test_the_classifier_of_the_first_run_colours_the_words(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write_run(tmp_path / "first"), write_run(tmp_path / "second")
    opinions = {first: OPINIONS, second: None}
    monkeypatch.setattr("tenor.runtime.model.load", lambda run: opinions[run])
    page = tenor.report([folder, first, second], tmp_path / "page.html").read_text()
    assert "most negative: awful, bad; most positive: great, good." in page
    assert "2 runs and 1 word map" in page and "Map of the 7 commonest words" in page


def test_the_data_of_a_map_has_every_word_with_its_sentiment() -> None:
    lines = list(csv.DictReader(io.StringIO(draw_map(some(), word_sentiments(OPINIONS, WORDS)).csv)))
    assert [line["word"] for line in lines] == list(WORDS)
    assert [line["sentiment"] for line in lines][5:] == ["", ""]
    assert [float(line["sentiment"]) for line in lines[:5]] == pytest.approx([0.8, 1.0, -0.6, -1.0, 0.0], abs=1e-6)


def test_damaged_and_tiny_vectors_are_refused(folder: Path, tmp_path: Path) -> None:
    assert holds_vectors(folder) and not holds_vectors(tmp_path)
    file = folder / "vectors.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    with pytest.raises(RunError, match=r"hash|not finite"):
        tenor.report(folder, tmp_path / "map.html")
    (tmp_path / "tiny").mkdir()
    save_vectors(tmp_path / "tiny", some(WORDS[:3]), SETTINGS, {"words": 3, "loss": 0.25})
    with pytest.raises(UsageError, match="has only 3 words, too few for a map"):
        tenor.report(tmp_path / "tiny", tmp_path / "map.html")
    assert not (tmp_path / "map.html").exists()
