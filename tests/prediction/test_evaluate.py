"""Evaluation of files: every row is accounted for, and labels mean the same as in the run's data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.command import call_tenor
from helpers.corpora import Review, make_reviews, write_csv, write_json_lines

import tenor
from tenor.cli.summaries import accounting, metrics_table, reliability_table
from tenor.errors import CorpusError, UsageError
from tenor.evaluation.metrics import Metrics
from tenor.progress import Silent

METRICS = [field.name for field in fields(Metrics)]
ZERO_ONE = {"negative": ["0"], "positive": ["1"]}


class Heard(Silent):
    """Progress that keeps its warnings and stages."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stages: dict[str, list[Any]] = {}

    def start(self, stage: str, total: float | None, unit: str) -> None:
        self.now = self.stages.setdefault(stage, [total, unit, 0])

    def advance(self, amount: float, note: str = "") -> None:
        self.now[2] += amount

    def warn(self, line: str) -> None:
        self.lines.append(line)


def mixed() -> list[Review]:
    """300 reviews of two classes, 40 of 3 stars, and 7 without a word (two of them of 3 stars)."""
    neutral = [Review(review.text + " again", 3) for review in make_reviews(40, seed=22)]
    pairs = (("", 1), (" ", 5), ("…", 4), ("--", 2), (". .", 5), ("", 3), ("&nbsp;", 3))
    empty = [Review(text, rating) for text, rating in pairs]
    return [*make_reviews(150, seed=21), *empty, *neutral, *make_reviews(150, seed=23)]


def test_a_raw_file_is_measured_and_accounted_for_as_prepare_does(run: Path, tmp_path: Path) -> None:
    raw = write_json_lines(tmp_path / "new.jsonl", [*mixed(), *mixed()[:20]])
    with raw.open("a", encoding="utf-8") as file:
        file.write('{"text": "no stars here", "rating": "NaN"}\nbroken\n')
    # The same file prepared: every row into one split, none removed as a duplicate.
    settings = tenor.PrepareSettings(
        vocab=str(run), dedupe=False, test_share=0.0, valid_share=0.0, workers=1, max_rejects=0.1
    )
    prepared = tenor.prepare([raw], tmp_path / "data", settings)
    found = tenor.evaluate(run, raw, tenor.EvaluateSettings(max_rejects=0.1))
    assert found.rows_read == prepared.rows_read == 300 + 20 + 40 + 7 + 2
    assert found.rows == prepared.rows_kept == 300 + 20
    assert (found.dropped, found.rejected) == (prepared.dropped, prepared.rejected)
    assert {**found.dropped, **found.rejected}["empty"] == 7 and found.dropped["neutral"] == 40
    expected = tenor.evaluate(run, tmp_path / "data", tenor.EvaluateSettings(split="train"))
    assert (expected.rows_read, expected.dropped, expected.rejected) == (320, {}, {})
    assert found.confusion == expected.confusion and found.per_class == expected.per_class
    assert found.auc == pytest.approx(expected.auc, abs=1e-9)
    assert found.log_loss == pytest.approx(expected.log_loss, rel=1e-6)


def test_the_command_accounts_for_every_row(run: Path, tmp_path: Path) -> None:
    raw = write_csv(tmp_path / "new.csv", mixed())
    values = call_tenor("evaluate", run, raw, "--max-rejects", "0.1", "--json").ok().json
    left_out = sum(values["dropped"].values()) + sum(values["rejected"].values())
    assert values["rows_read"] == 347 == values["rows"] + left_out
    assert values["train_rows"] == json.loads((run / "result.json").read_text())["train_rows"] > 0
    said = accounting(values)
    assert said.startswith("347 rows read: 300 measured, ") and "neutral 40" in said and "empty 7" in said
    assert metrics_table(values, "new.csv").startswith("new.csv, 300 rows\n")
    head, _, *bins = reliability_table(values).splitlines()
    assert head.split() == ["probability", "of", "positive", "rows", "mean", "came", "true"]
    assert len(bins) == len(values["reliability"]) and sum(int(line.split()[3]) for line in bins) == 300


def test_the_distance_of_stars_stands_beside_that_of_the_baseline() -> None:
    figures = {"accuracy": 0.5, "f1_macro": 0.4, "f1_weighted": 0.4, "auc": None}
    metrics = {**figures, "rows": 4, "mean_absolute_error": 1.25}
    shown = metrics_table({**metrics, "majority_baseline": {**figures, "mean_absolute_error": 1.5}}, "test split")
    assert ["mean", "absolute", "error", "1.2500", "1.5000"] in [line.split() for line in shown.splitlines()]
    older = metrics_table({**metrics, "majority_baseline": figures}, "test split")
    assert any(line.startswith("mean absolute error") and "1.2500" in line for line in older.splitlines())
    assert "absolute" not in metrics_table({**figures, "rows": 4, "majority_baseline": figures}, "test split")


def stars(counts: dict[int, int]) -> list[Review]:
    texts = iter(make_reviews(sum(counts.values()), seed=31))
    return [Review(next(texts).text, star) for star, count in counts.items() for _ in range(count)]


def test_star_ratings_are_refused_by_a_run_of_labels_0_and_1(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run(labels=ZERO_ONE)
    raw = write_csv(tmp_path / "stars.csv", stars({1: 30, 2: 20, 3: 40, 4: 100, 5: 200}))
    with pytest.raises(UsageError) as refused:
        tenor.evaluate(run, raw)
    said = str(refused.value)
    assert said.startswith(f"{raw}: 360 of 390 rows have labels that the run does not know (2, 3, 4, 5)")
    assert "0 for negative; 1 for positive" in said and "the file has 1, 2, 3, 4, 5" in said
    assert "--negative and --positive" in refused.value.for_command_line
    told = tenor.evaluate(run, raw, tenor.EvaluateSettings(negative="1,2", positive="4,5"))
    assert (told.rows, told.dropped["neutral"]) == (350, 40)


def test_words_are_refused_by_a_run_of_stars(run: Path, tmp_path: Path) -> None:
    raw = tmp_path / "words.csv"
    raw.write_text("text,label\n" + "".join(f"{text},{'neg' if s < 3 else 'pos'}\n" for text, s in make_reviews(20)))
    with pytest.raises(UsageError, match=r"20 of 20 rows have labels that the run does not know \(neg, pos\)"):
        tenor.evaluate(run, raw)


def test_some_unknown_labels_are_a_warning_and_neutral_ones_none(run: Path, tmp_path: Path) -> None:
    heard = Heard()
    raw = write_csv(tmp_path / "stars.csv", stars({1: 30, 3: 90, 5: 30, 7: 4}))
    found = tenor.evaluate(run, raw, progress=heard)
    assert [line for line in heard.lines if "4 of 154 rows" in line and "(7)" in line and "not measured" in line]
    assert (found.rows, found.dropped["neutral"]) == (60, 94)
    heard = Heard()
    write_csv(raw, stars({1: 30, 3: 90, 5: 30}))
    tenor.evaluate(run, raw, progress=heard)
    assert heard.lines == []


def test_rejected_rows_beyond_the_limit_are_refused_with_the_first_line(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)  # several pieces: lines are counted through them
    lines = write_json_lines(tmp_path / "new.jsonl", make_reviews(200, seed=4)).read_text("utf-8").splitlines()
    lines[150:152] = ["broken", "broken too"]
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(CorpusError, match=r"2 of 200 rows cannot be used .*the first in line 151"):
        tenor.evaluate(run, tmp_path / "new.jsonl", tenor.EvaluateSettings(max_rejects=0.009))
    assert tenor.evaluate(run, tmp_path / "new.jsonl", tenor.EvaluateSettings(max_rejects=0.01)).rows == 198


def test_two_workers_measure_the_same_to_the_bit(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 8192)
    raw = write_json_lines(tmp_path / "new.jsonl", mixed())
    for source, stage, rows in ((raw, "read", 300), (data, "evaluate", 0)):
        heard = Heard()
        one = tenor.evaluate(run, source, tenor.EvaluateSettings(max_rejects=0.1, threads=1), heard)
        two = tenor.evaluate(run, source, tenor.EvaluateSettings(max_rejects=0.1, threads=1, workers=2))
        assert one.as_dict() == two.as_dict()
        assert heard.stages["evaluate"] == [one.rows, "row", one.rows]
        assert stage in heard.stages and (not rows or one.rows == rows)
    assert heard.lines == []


def test_a_split_is_named_above_its_table(run: Path, data: Path) -> None:
    rows = json.loads((data / "manifest.json").read_text("utf-8"))["splits"]["valid"]["rows"]
    said = call_tenor("evaluate", run, data, "--split", "valid").ok().stdout
    assert said.startswith(f"valid split, {rows:,} rows\n") and f"{rows:,} rows read: {rows:,} measured" in said
    learned = json.loads((run / "result.json").read_text())["train_rows"]
    assert said.rstrip().endswith(f"the model learned from {learned:,} rows")


def test_rows_that_the_model_has_seen_are_named(
    run: Path, make_run: Callable[..., Path], data: Path, tmp_path: Path
) -> None:
    def warned(run: Path, data: Path, split: str) -> list[str]:
        tenor.evaluate(run, data, tenor.EvaluateSettings(split=split), heard := Heard())
        return heard.lines

    seen = "the model has learned from these rows"
    assert warned(run, data, "test") == warned(run, data, "valid") == []
    assert [f"{seen} (--split train)" in line for line in warned(run, data, "train")] == [True]
    config = json.loads((run / "config.json").read_text("utf-8"))
    on_all = make_run(settings={**config["settings"], "all_rows": True})
    assert [f"{seen} (--all-rows)" in line for line in warned(on_all, data, "test")] == [True]
    raw = write_json_lines(tmp_path / "new.jsonl", make_reviews(50, seed=9))
    assert warned(on_all, raw, "test") == []
    assert [line.startswith("--split valid has no effect") for line in warned(run, raw, "valid")] == [True]


def test_options_of_raw_files_do_nothing_to_prepared_data(run: Path, data: Path) -> None:
    settings = tenor.EvaluateSettings(split="valid", negative="1", text_column="body", workers=1, abstain_below=0.6)
    tenor.evaluate(run, data, settings, heard := Heard())
    assert heard.lines == ["no effect on prepared data, which has been read already: --negative, --text-column"]


def test_a_table_in_memory_is_measured_like_a_file(run: Path, make_run: Callable[..., Path], tmp_path: Path) -> None:
    reviews = mixed()
    columns = {"text": [review.text for review in reviews], "rating": [review.rating for review in reviews]}
    expected = tenor.evaluate(run, write_json_lines(tmp_path / "new.jsonl", reviews))
    assert tenor.evaluate(run, columns) == tenor.evaluate(run, pa.table(columns), progress=False) == expected
    with pytest.raises(
        UsageError, match="a value of type int is neither the name of a file or folder nor a data frame"
    ):
        tenor.evaluate(run, 5)  # type: ignore[arg-type]
    titled, heard = make_run(text={"title_column": "head"}), Heard()
    with_titles = {**columns, "head": ["superb"] * len(reviews)}
    tenor.evaluate(titled, columns, progress=heard)
    assert "data frame: has no column 'head'" in heard.lines[0]
    found = tenor.evaluate(titled, with_titles, progress=heard)
    assert len(heard.lines) == 1 and found.confusion != expected.confusion
