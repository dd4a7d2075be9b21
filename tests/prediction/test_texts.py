"""Which texts Python callers may pass to `predict`, and how texts without known words are reported."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from helpers.command import run_tenor

import tenor
from tenor.errors import CorpusError, UsageError
from tenor.runtime.texts import as_texts

TEXTS = ["a superb film", "dreadful and boring", "superb"]


@pytest.fixture(scope="module")
def model(run: Path) -> tenor.SentimentModel:
    return tenor.load(run)


def test_arrays_and_series_are_lists_of_texts(model: tenor.SentimentModel) -> None:
    expected = model.predict(TEXTS)
    given = [tuple(TEXTS), iter(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pa.array(TEXTS)]
    given += [pa.chunked_array([TEXTS[:2], TEXTS[2:]]), pa.array(TEXTS).dictionary_encode()]
    for texts in given:
        assert model.predict(texts) == expected, type(texts)
    assert model.predict([]) == [] and model.predict(np.array([], dtype=str)) == []


def assert_same(found: list[tenor.Prediction], expected: list[tenor.Prediction]) -> None:
    """Batches of other sizes are computed in another order, so probabilities are equal up to rounding."""
    assert [(one.label, one.known_words) for one in found] == [(one.label, one.known_words) for one in expected]
    assert [one.probability for one in found] == pytest.approx([one.probability for one in expected], abs=1e-6)


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_a_pandas_series_with_missing_values(model: tenor.SentimentModel) -> None:
    import pandas as pd

    series = pd.Series(["superb", None, float("nan"), pd.NA, ""], index=[7, 7, 8, 9, 10])
    found = model.predict(series)
    assert [said.known_words for said in found] == [1, 0, 0, 0, 0]
    assert_same(found[1:], model.predict([""]) * 4)
    assert_same(model.predict(series.to_frame("text")), found)  # a table with a column that prepare recognises
    with pytest.raises(CorpusError, match="the table: no known text column; text_column can be words"):
        model.predict(series.to_frame("words"))
    assert_same(model.predict(pa.table({"rating": [1], "review": ["superb"]})), found[:1])


def test_missing_values_are_empty_texts() -> None:
    assert as_texts(["a", None, float("nan"), np.float32("nan")]) == ["a", "", "", ""]
    assert as_texts(pa.array(["a", None])).to_pylist() == ["a", ""]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("great food", r"one string instead of a list of texts; pass a list: \['great food'\]"),
        (b"great food", "one string"),
        ({"text": "fine"}, "got a value of type dict"),
        ({"fine"}, "got a value of type set instead of a list of texts"),  # has no order
        (5, "got a value of type int instead of a list of texts"),
        (None, "got a value of type NoneType"),
        (np.array([["a"], ["b"]]), "got a value of type ndarray"),
        (np.array("a"), "got a value of type ndarray"),
        (["fine", "also", 3], r"text 2 \(counted from 0\) is not a string but int 3"),
        (["fine", b"bytes"], r"text 1 \(counted from 0\) is not a string but bytes"),
        (["fine", ["a", "list"]], "text 1 .* is not a string but list"),
        (pa.array([1, 2]), "an Arrow array of int64"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(model: tenor.SentimentModel, given: object, told: str) -> None:
    for call in (model.predict, model.probabilities):
        with pytest.raises(UsageError, match=told):
            call(given)  # type: ignore[arg-type]


def test_known_words_are_counted(model: tenor.SentimentModel) -> None:
    texts = ["superb superb film", "", " \t", "qwertyuiop", "superb qwertyuiop", "…"]
    assert [said.known_words for said in model.predict(texts)] == [3, 0, 0, 0, 1, 0]
    long = " ".join(["superb"] * 3000)
    assert model.predict([long])[0].known_words == model.config["max_length"]


def test_reviews_without_known_words_are_marked(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("a superb film\nqwertyuiop\n\n", "utf-8")
    plain = run_tenor("predict", run, tmp_path / "new.txt").ok()
    assert [line.split("\t")[2] for line in plain.stdout.splitlines()] == ["2", "0", "0"]
    assert "2 of 3 reviews have no word that the model knows" in plain.stderr
    lines = run_tenor("predict", run, tmp_path / "new.txt", "--json", "--threads", "1").ok()
    assert [json.loads(line)["known_words"] for line in lines.stdout.splitlines()] == [2, 0, 0]
    assert "2 of 3 reviews" in lines.stderr
