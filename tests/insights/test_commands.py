"""`tenor insights` and `tenor drift` as commands, from raw files to verdicts and pages."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.command import call_tenor
from helpers.corpora import write_json_lines
from helpers.models import change_weights
from insights.stored import plain_reviews

import tenor
from tenor.insights import drift
from tenor.insights.domain import shortened
from tenor.insights.scoring import RunScorer
from tenor.prediction.worker_model import ModelRef
from tenor.reports.sections.insights import insights_page
from tenor.store.reference import LENGTH


def write_products(path: Path, rows: int = 600) -> Path:
    """Reviews of two products, the second worse, with dates; one row is empty and one has no text."""
    rng = random.Random(1)
    lines = []
    for number, review in enumerate(plain_reviews(rows, seed=21)):
        asin = "good" if rng.random() < (0.8 if review.rating > 3 else 0.2) else "bad<b>"
        day = f"2024-{1 + number * 12 // rows:02d}-15"
        lines.append({"asin": asin, "day": day, "text": review.text, "rating": review.rating})
    lines += [{"asin": "good", "day": "?", "text": " ... ", "rating": 5}, {"asin": "good", "rating": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_insights_from_a_raw_file_to_json_and_a_page(run: Path, tmp_path: Path) -> None:
    raw = write_products(tmp_path / "products.jsonl")
    words = ("insights", run, raw, "--by", "asin", "--time", "day", "--out", tmp_path / "out.html", "--workers", "1")
    found = call_tenor(*words, "--json").ok().json
    assert (found["rows"], found["rows_read"], found["dropped"], found["rejected"]) == (
        600,
        602,
        {"empty": 1},
        {"missing text": 1},
    )
    low, high = found["negative_interval"]
    assert 0.3 < low < found["negative_share"] < high < 0.7
    assert abs(found["negative_share"] - found["labelled_negative_share"]) < 0.05
    assert [group["group"] for group in found["groups"]] == ["bad<b>", "good"] and found["num_groups"] == 2
    assert [row["period"] for row in found["over_time"]] == [f"2024-{month:02d}" for month in range(1, 13)]
    assert sum(row["rows"] for row in found["over_time"]) == 600
    bad = {"dreadful", "boring", "awful", "clumsy", "tedious", "horrible", "lifeless", "terrible"}
    assert {word for row in found["phrases"]["negative"][:5] for word in row["phrase"].split()} & bad
    assert {"file", "line", "label", "probability"} <= set(found["label_errors"][0])
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["rows"] == 600
    page = (tmp_path / "out.html").read_text("utf-8")
    assert "bad&lt;b&gt;" in page and "bad<b>" not in page and "prefers-color-scheme: dark" in page


def test_the_page_and_its_data_have_names_of_their_own(run: Path, tmp_path: Path) -> None:
    raw = write_products(tmp_path / "products.jsonl")
    said = call_tenor("insights", run, raw, "--out", tmp_path / "out.json").failed(2)
    assert "give a name that ends with .html" in said and not (tmp_path / "out.json").exists()
    (tmp_path / "taken.json").mkdir()
    assert "taken.json: is a folder" in call_tenor("insights", run, raw, "--out", tmp_path / "taken.html").failed(2)


def test_a_run_without_a_wide_part_finds_phrases_too(deep_run: Path, tmp_path: Path) -> None:
    raw = write_products(tmp_path / "products.jsonl")
    found = tenor.find_insights(deep_run, raw, tenor.InsightsSettings(workers=1)).as_dict()
    telling = {"superb", "wonderful", "delightful", "excellent", "brilliant", "charming", "moving", "perfect"}
    assert {word for row in found["phrases"]["positive"][:5] for word in row["phrase"].split()} & telling
    assert found["groups"] == [] and found["over_time"] == [] and found["rising"] == []


def test_the_threshold_of_the_run_decides_which_reviews_are_negative(run: Path, tmp_path: Path) -> None:
    reviews = plain_reviews(200, seed=22)
    raw, strict = write_json_lines(tmp_path / "new.jsonl", reviews), tmp_path / "strict"
    shutil.copytree(run, strict)
    chances = tenor.load(run).predict_proba([review.text for review in reviews])[:, 1]
    limit = float(np.sort(chances)[-5])  # only four reviews are positive
    change_weights(strict, combination__threshold=torch.tensor([limit]))
    found = tenor.find_insights(strict, raw, tenor.InsightsSettings(workers=1)).as_dict()
    assert found["negative_rows"] == int((chances <= np.float32(limit)).sum()) == 196
    scorer = RunScorer(ModelRef.of(strict))
    rows = shortened(*scorer.encode(pa.array([review.text for review in reviews])), LENGTH)
    assert drift._predicted(rows, scorer)["positive"]["share"] == 4 / 200


def test_a_column_that_names_no_group_is_mentioned(run: Path, tmp_path: Path) -> None:
    raw = tmp_path / "lists.jsonl"
    rows = [{"text": review.text, "kinds": ["a", "b"]} for review in plain_reviews(20, seed=6)]
    raw.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    said = call_tenor("insights", run, raw, "--by", "kinds", "--out", tmp_path / "out.html", "--workers", "1").ok()
    assert "--by kinds: no row has a text or number there" in said.stderr
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["rows_without_group"] == 20


def test_unlabelled_files_have_no_label_errors(run: Path, tmp_path: Path) -> None:
    raw = tmp_path / "plain.csv"
    raw.write_text("text\n" + "".join(f"{review.text}\n" for review in plain_reviews(100, seed=5)), "utf-8")
    found = tenor.find_insights(run, [raw], tenor.InsightsSettings(workers=1)).as_dict()
    assert (found["rows"], found["labelled_rows"], found["label_errors"]) == (100, 0, [])
    assert found["labelled_negative_share"] is None and insights_page(found)


def test_drift_tells_the_same_reviews_from_others_by_its_exit_code(run: Path, tmp_path: Path) -> None:
    same = write_json_lines(tmp_path / "same.jsonl", plain_reviews(500, seed=77))
    found = call_tenor("drift", run, same, "--json").ok().json
    assert found["verdict"] == "same" and found["auc"] < 0.6 and found["phrases"] == []
    assert (found["rows"], found["rows_read"]) == (500, 500)
    assert abs(found["unknown_words"] - found["unknown_words_reference"]) < 0.02
    rng = random.Random(0)
    texts = [" ".join(rng.choices(["the", "blender", "very", "kitchen", "broken"], k=12)) for _ in range(400)]
    other = tmp_path / "other.csv"
    other.write_text("text\n" + "".join(f"{text}\n" for text in texts), "utf-8")
    differs = call_tenor("drift", run, other, "--json")
    assert differs.code == 3 and differs.json["verdict"] == "different" and differs.json["auc"] > 0.9
    assert differs.json["unknown_words"] > 0.3 and differs.json["phrases"]


def test_neutral_ratings_do_not_count_as_drift(run: Path, tmp_path: Path) -> None:
    reviews = plain_reviews(400, seed=78)
    neutral = [json.dumps({"text": "the parcel came on monday " * 3 + str(row), "rating": 3}) for row in range(400)]
    raw = tmp_path / "new.jsonl"
    lines = [json.dumps({"text": review.text, "rating": review.rating}) for review in reviews]
    raw.write_text("".join(f"{line}\n" for line in [*lines, *neutral]), "utf-8")
    found = tenor.measure_drift(run, raw)
    assert found.verdict == "same" and found.as_dict()["dropped"] == {"neutral": 400}
    assert found.as_dict()["rows_read"] == 800


def test_drift_needs_something_to_compare_with(run: Path, data: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(run, old)
    (old / "reference.safetensors").unlink()
    raw = write_json_lines(tmp_path / "new.jsonl", plain_reviews(300, seed=79))
    assert "--reference" in call_tenor("drift", old, raw).failed(1)
    for reference in (data, raw):
        settings = tenor.DriftSettings(reference=str(reference))
        assert tenor.measure_drift(old, raw, settings).verdict == "same"
    tenor.export_model(run, tmp_path / "small.tenor", format="compact")
    assert "has no sample of its data" in call_tenor("drift", tmp_path / "small.tenor", raw).failed(1)
    assert tenor.measure_drift(tmp_path / "small.tenor", raw, reference=str(data)).verdict == "same"
    few = write_json_lines(tmp_path / "few.jsonl", plain_reviews(10, seed=80))
    assert "too few" in call_tenor("drift", run, few).failed(1)


def test_the_stored_sample_does_not_change_the_weights(run: Path) -> None:
    """The sample is written beside the weights, whose hash is recorded before it."""
    assert (run / "reference.safetensors").exists()
    assert tenor.load(run).predict(["superb"])[0].label == "positive"


@pytest.mark.parametrize("wrong", [{"rows": 5}, {"effect": 0.2}])
def test_wrong_drift_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(tenor.TenorError):
        tenor.DriftSettings(**wrong)  # type: ignore[arg-type]
