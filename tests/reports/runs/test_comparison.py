"""Comparing two runs: settings, flipped rows and the paired test, on stored scores, prepared data and raw files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import call_tenor
from helpers.corpora import make_reviews, write_json_lines
from helpers.runs import store_scores, write_run
from helpers.training import as_only_rank

import tenor
from tenor.errors import RunError, UsageError
from tenor.reports.runs.comparison import compare_runs
from tenor.reports.settings import RunsSettings
from tenor.training.runs.row_scores import NAME


def make_pair(folder: Path) -> tuple[Path, Path]:
    """Two runs that judged the same 200 rows; the second is clearly better."""
    one = write_run(folder / "one", epochs=1, steps=2, settings={"cell": "lstm", "seed": 0, "lr": 0.1})
    two = write_run(folder / "two", epochs=1, steps=2, settings={"cell": "gru", "seed": 0, "hidden": 8})
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 200)
    for run, share in ((one, 0.7), (two, 0.9)):
        right = rng.random(200) < share
        store_scores(run, np.where(right == (labels == 1), 0.9, 0.2) + rng.random(200) * 0.05, labels)
    return one, two


def change(run: Path, **values: Any) -> None:
    config = json.loads((run / "config.json").read_text("utf-8"))
    (run / "config.json").write_text(json.dumps({**config, **values}), "utf-8")


def test_stored_scores_agree_with_a_loop_over_the_rows(tmp_path: Path) -> None:
    one, two = make_pair(tmp_path)
    got = tenor.compare_runs(one, two, tenor.RunsSettings(flips=1000))
    assert got.settings == {"cell": ("lstm", "gru"), "lr": (0.1, None), "hidden": (None, 8)}
    from safetensors.numpy import load_file

    first, second = (load_file(run / NAME) for run in (one, two))
    flipped, only = [], [0, 0]
    for row, (a, b, label) in enumerate(
        zip(first["probabilities"], second["probabilities"], first["labels"], strict=True)
    ):
        if (a > 0.5) != (b > 0.5):
            flipped.append(row)
            only[int((b > 0.5) == label)] += 1
    assert got.test is not None and got.measured_on == "test rows" and got.reason == ""
    assert (got.test.rows, got.test.flipped) == (200, len(flipped))
    assert [got.test.only_first, got.test.only_second] == only
    assert {flip.place for flip in got.flips} == {f"row {row}" for row in flipped}
    for flip in got.flips:
        row = int(flip.place.removeprefix("row "))
        truth = int(first["labels"][row])
        chance = float(first["probabilities"][row])
        assert flip.label == ("negative", "positive")[truth] and flip.first != flip.second
        assert flip.first_probability == pytest.approx(chance if truth else 1 - chance, abs=1e-6)
    changes = [abs(flip.first_probability - flip.second_probability) for flip in got.flips]
    assert changes == sorted(changes, reverse=True)
    assert got.better == str(two) == got.as_dict()["better"]
    assert len(compare_runs(one, two, RunsSettings(flips=3)).flips) == 3


def test_runs_that_judged_other_rows_are_not_compared_row_by_row(tmp_path: Path) -> None:
    one, two = make_pair(tmp_path)
    change(two, data_sha256="other")
    got = compare_runs(one, two)
    assert got.test is None and got.better is None and got.reason == "the runs were trained on different data"
    assert got.settings["data_sha256"] == ("c0ffee" * 10, "other")
    change(two, data_sha256="c0ffee" * 10)
    store_scores(two, [0.5] * 200, [1] * 200)
    assert compare_runs(one, two).reason == "the runs were measured on different rows"
    (two / NAME).unlink()
    assert "two has not stored the scores" in compare_runs(one, two).reason
    (two / NAME).write_bytes(b"junk")
    with pytest.raises(RunError, match="is not a file of scores"):
        compare_runs(one, two)


def test_the_command_prints_settings_flips_and_the_verdict(tmp_path: Path) -> None:
    one, two = make_pair(tmp_path)
    shown = call_tenor("runs", one, two, "--compare", "--flips", "2").ok().stdout
    assert "McNemar's test: p = " in shown and f"better: {two}" in shown and shown.count("\nrow ") == 2
    got = call_tenor("runs", two, one, "--compare", "--json").ok().json
    assert [Path(run["run"]).name for run in got["runs"]] == ["two", "one"]
    (pair,) = got["comparisons"]
    assert pair["first"] == str(two) and pair["better"] == str(two)
    assert pair["test"]["difference"] < 0 and pair["test"]["p_mid"] < 0.05
    store_scores(one, [0.1], [1])
    assert (
        "rows cannot be compared: the runs were measured on different rows"
        in call_tenor("runs", one, two, "--compare").ok().stdout
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on data with different vocabularies, and a raw file with labels."""
    folder = tmp_path_factory.mktemp("trained")
    raw = write_json_lines(folder / "reviews.jsonl", make_reviews(300, seed=3))
    write_json_lines(folder / "new.jsonl", make_reviews(80, seed=9))
    for name, size, epochs in (("good", 2000, 3), ("poor", 12, 1)):
        tenor.prepare([raw], folder / f"data-{name}", tenor.PrepareSettings(vocab_size=size, workers=1))
        settings = tenor.TrainSettings(model="wide", workers=1, epochs=epochs, ngram_bits=16, wide_lr=0.3)
        with as_only_rank():
            tenor.train(folder / f"data-{name}", folder / name, settings)
    return folder


def test_runs_with_other_vocabularies_are_compared_on_a_raw_file(trained: Path) -> None:
    settings = RunsSettings(data=str(trained / "new.jsonl"), flips=5)
    got = compare_runs(trained / "poor", trained / "good", settings)
    assert got.test is not None and got.test.rows == 80 and got.measured_on == f"rows of {trained / 'new.jsonl'}"
    lines = [json.loads(line) for line in (trained / "new.jsonl").read_text("utf-8").splitlines()]
    predicted = {
        name: [p.label for p in tenor.load(trained / name).predict([line["text"] for line in lines])]
        for name in ("poor", "good")
    }
    flipped = [n for n, (a, b) in enumerate(zip(predicted["poor"], predicted["good"], strict=True), 1) if a != b]
    assert got.test.flipped == len(flipped) and got.flips
    for flip in got.flips:
        number = int(flip.place.rpartition("line ")[2])
        assert number in flipped
        assert flip.label == ("negative" if lines[number - 1]["rating"] < 3 else "positive")
        known = [word for word in flip.words.split() if word != "…"]
        assert set(known) <= set(lines[number - 1]["text"].split())
    assert compare_runs(trained / "poor", trained / "good").reason == "the runs were trained on different data"


def test_prepared_data_gives_the_rows_of_its_split(trained: Path) -> None:
    data = RunsSettings(data=str(trained / "data-good"), split="valid")
    got = compare_runs(trained / "good", trained / "good", data)
    assert got.test is not None and got.test.flipped == 0 and got.better is None
    assert (
        got.test.rows
        == tenor.evaluate(trained / "good", trained / "data-good", tenor.EvaluateSettings(split="valid")).rows
    )
    with pytest.raises(tenor.TenorError, match="another vocabulary"):
        compare_runs(trained / "good", trained / "poor", data)


def test_runs_of_other_classes_are_not_compared(tmp_path: Path) -> None:
    one, other = write_run(tmp_path / "one"), write_run(tmp_path / "stars", classes=("1", "2", "3"))
    with pytest.raises(UsageError, match="different classes"):
        compare_runs(one, other, RunsSettings(data="new.jsonl"))
