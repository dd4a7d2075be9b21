"""A whole run: training, the run folder, evaluation and prediction."""

from __future__ import annotations

import io
import json
import math
import select
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.command import call_tenor, run_tenor
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import child_environment, python
from helpers.training import events, run

import tenor
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split
from tenor.training.runs.row_scores import read_row_scores


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    out = tmp_path_factory.mktemp("trained") / "run"
    return out, run(data, out, epochs=6, workers="2", lr=0.02)


def test_the_model_learns_and_is_measured_beside_the_baseline(trained: tuple[Path, dict], data: Path) -> None:  # type: ignore[type-arg]
    _, result = trained
    assert result["test"]["accuracy"] > 0.95 > result["test"]["majority_baseline"]["accuracy"] + 0.3
    assert result["steps"] == 6 * math.ceil(Manifest.load(data).splits["train"].rows / 32)


def test_the_run_folder_is_complete(trained: tuple[Path, dict]) -> None:  # type: ignore[type-arg]
    run_folder, result = trained
    names = {path.name for path in run_folder.iterdir()}
    wanted = {"config.json", "environment.json", "metrics.jsonl", "model.safetensors", "result.json", "vocab.json"}
    assert wanted <= names
    assert "checkpoints" not in names
    steps, epochs = events(run_folder), events(run_folder, "epoch")
    assert [event["step"] for event in steps] == list(range(1, result["steps"] + 1))
    assert [event["epoch"] for event in epochs] == [1, 2, 3, 4, 5, 6]
    assert json.loads((run_folder / "result.json").read_text())["weights_sha256"] == result["weights_sha256"]
    per_epoch = [sum(e["samples"] for e in steps if e["epoch"] == n) for n in range(1, 7)]
    assert len(set(per_epoch)) == 1  # every row once per epoch


def test_evaluate_agrees_with_training(trained: tuple[Path, dict], data: Path) -> None:  # type: ignore[type-arg]
    run_folder, result = trained
    found = tenor.evaluate(run_folder, data).as_dict()
    close = {"log_loss", "calibration_error", "reliability"}  # computed without torch, so they differ by rounding
    assert {name: found[name] for name in result["test"] if name not in close} == {
        name: value for name, value in result["test"].items() if name not in close
    }
    assert found["log_loss"] == pytest.approx(result["test"]["log_loss"], rel=1e-4)
    assert found["calibration_error"] == pytest.approx(result["test"]["calibration_error"], abs=1e-6)
    assert (found["rows_read"], found["dropped"], found["rejected"]) == (found["rows"], {}, {})


def test_the_scores_are_those_of_the_kept_model_row_by_row(trained: tuple[Path, dict], data: Path) -> None:  # type: ignore[type-arg]
    scores = read_row_scores(trained[0])
    assert scores is not None
    with open_split(data, "test") as split:
        tokens, lengths = split.gather(np.arange(len(split)))
        expected = tenor.load(trained[0]).score_tokens(tokens, lengths)[:, 1]
        np.testing.assert_allclose(scores.arrays()[0], expected, atol=1e-5)
        np.testing.assert_array_equal(scores.arrays()[1], split.labels)


def test_evaluate_a_raw_file(trained: tuple[Path, dict], tmp_path: Path) -> None:  # type: ignore[type-arg]
    raw = write_json_lines(tmp_path / "new.jsonl.gz", make_reviews(200, seed=77))
    found = call_tenor("evaluate", trained[0], raw, "--json").ok().json
    assert found["rows"] == 200
    assert found["accuracy"] > 0.95
    assert {"f1_macro", "f1_weighted", "auc", "confusion", "majority_baseline"} <= set(found)


def test_labels_of_a_raw_file_mean_the_same_as_in_training(tmp_path: Path) -> None:
    reviews = make_reviews(1200, seed=8)
    raw = tmp_path / "reviews.csv"
    raw.write_text("text,label\n" + "".join(f"{text},{int(label > 3)}\n" for text, label in reviews), "utf-8")
    tenor.prepare([raw], tmp_path / "data", tenor.PrepareSettings(negative="0", positive="1", workers=1))
    run(tmp_path / "data", tmp_path / "run", epochs=6)
    found = tenor.evaluate(tmp_path / "run", raw)
    assert found.rows == 1200 and found.accuracy > 0.9
    turned = tenor.evaluate(tmp_path / "run", raw, tenor.EvaluateSettings(negative="1", positive="0"))
    assert turned.rows == 1200 and turned.accuracy == pytest.approx(1 - found.accuracy)
    fasttext = tmp_path / "reviews.ft.txt"
    fasttext.write_text("".join(f"__label__{1 + (label > 3)} {text}\n" for text, label in reviews), "utf-8")
    assert tenor.evaluate(tmp_path / "run", fasttext).accuracy == found.accuracy


def test_reversed_fasttext_labels_stay_reversed_in_evaluation(tmp_path: Path) -> None:
    reviews, raw = make_reviews(1200, seed=8), tmp_path / "reviews.ft.txt"
    raw.write_text("".join(f"__label__{2 - (label > 3)} {text}\n" for text, label in reviews), "utf-8")
    tenor.prepare([raw], tmp_path / "data", tenor.PrepareSettings(negative="2", positive="1", workers=1))
    run(tmp_path / "data", tmp_path / "run", epochs=6)
    assert tenor.evaluate(tmp_path / "run", raw).accuracy > 0.9


def test_evaluate_refuses_another_vocabulary(trained: tuple[Path, dict], tmp_path: Path) -> None:  # type: ignore[type-arg]
    raw = write_json_lines(tmp_path / "other.jsonl", make_reviews(300, seed=5))
    tenor.prepare([raw], tmp_path / "other", workers=1)
    error = call_tenor("evaluate", trained[0], tmp_path / "other").failed(1)
    assert "another vocabulary" in error


def test_predict_answers_each_line_of_a_pipe_at_once(trained: tuple[Path, dict]) -> None:  # type: ignore[type-arg]
    words, pipe = python("-m", "tenor", "predict", str(trained[0]), "-"), subprocess.PIPE
    with subprocess.Popen(words, env=child_environment(), stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        assert process.stdin and process.stdout
        try:
            for said in ("a wonderful superb film\n", "boring dreadful awful plot\n"):
                process.stdin.write(said)
                assert select.select([process.stdout], [], [], 60)[0], "no answer while the pipe is open"
                assert process.stdout.readline().split("\t")[0] in ("positive", "negative")
        finally:
            process.stdin.close()
            process.kill()


def test_predict_refuses_invalid_requests_before_it_starts(trained: tuple[Path, dict], tmp_path: Path) -> None:  # type: ignore[type-arg]
    raw = write_json_lines(tmp_path / "new.jsonl", make_reviews(20, seed=7))
    assert "is a folder" in call_tenor("predict", trained[0], raw, "--out", tmp_path).failed(2)
    run_tenor("predict", trained[0], raw, "--out", tmp_path / "new" / "folder" / "out.jsonl").ok()
    assert len((tmp_path / "new" / "folder" / "out.jsonl").read_text("utf-8").splitlines()) == 20
    assert "belong to --engine dask" in call_tenor("predict", trained[0], raw, "--tls-ca", "ca.pem").failed(2)
    assert "--max-rejects needs --out" in call_tenor("predict", trained[0], "-", "--max-rejects", "0.1").failed(2)


def test_predict_from_standard_input_and_from_a_file(trained: tuple[Path, dict], tmp_path: Path) -> None:  # type: ignore[type-arg]
    said = "a wonderful superb film with a delightful ending\nboring dreadful awful plot\n\n"
    found = run_tenor("predict", trained[0], "-", "--json", input=said).ok()
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert [line["label"] for line in lines[:2]] == ["positive", "negative"]
    assert all(0.5 <= line["probability"] <= 1 for line in lines)
    raw = write_json_lines(tmp_path / "new.jsonl", make_reviews(50, seed=8))
    run_tenor("predict", trained[0], raw, "--out", tmp_path / "out.jsonl").ok()
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 50
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_predict_is_the_same_on_several_workers(trained: tuple[Path, dict], tmp_path: Path, monkeypatch) -> None:  # type: ignore[type-arg,no-untyped-def]
    raw = write_json_lines(tmp_path / "new.jsonl", make_reviews(300, seed=9))
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)
    texts = [review.text for review in make_reviews(300, seed=9)]
    rows = tenor.predict(trained[0], raw, tmp_path / "two.jsonl", tenor.PredictSettings(workers=2))
    assert rows == 300
    found = [json.loads(line) for line in (tmp_path / "two.jsonl").read_text().splitlines()]
    expected = tenor.load(trained[0]).predict(texts)
    assert [line["label"] for line in found] == [said.label for said in expected]
    assert [line["probability"] for line in found] == pytest.approx([said.probability for said in expected], abs=1e-5)


def test_the_python_api_predicts(trained: tuple[Path, dict]) -> None:  # type: ignore[type-arg]
    model = tenor.load(trained[0])
    good, bad, nothing = model.predict(["superb and charming", "tedious, clumsy, lifeless", ""])
    assert (good.label, bad.label) == ("positive", "negative")
    assert nothing.label in model.classes
    together = model.probabilities(["superb", "a much longer text about a tedious film"])
    assert together[0] == pytest.approx(model.probabilities(["superb"])[0], abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("train", "nowhere", "--out", "run"), 1, "nowhere"),
        (("train", "DATA", "--out", "run", "--cell", "transformer"), 2, "lstm, gru, rnn"),
        (("train", "DATA", "--out", "run", "--workers", "0"), 2, "--workers"),
        (("train", "DATA", "--out", "run", "--shares", "1:2", "--workers", "3"), 2, "--shares"),
        (("train", "DATA", "--out", "run", "--class-weights", "x", "--workers", "1"), 2, "--class-weights"),
        (("train", "DATA", "--out", "run", "--backend", "mpi", "--workers", "1"), 2, "mpirun"),
        (("train", "DATA", "--out", "run", "--config", "no.toml"), 2, "no.toml"),
        (("evaluate", "nowhere", "DATA"), 1, "nowhere"),
        (("predict", "nowhere", "-"), 1, "nowhere"),
    ],
)
def test_usage_errors_are_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))
    assert words in call_tenor(*(str(data) if word == "DATA" else word for word in arguments)).failed(code)
    assert list(tmp_path.iterdir()) == []  # nothing half-written


def test_a_folder_in_use_is_not_overwritten(data: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    error = call_tenor("train", data, "--out", tmp_path).failed(2)
    assert "--resume" in error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_settings_from_a_file_and_the_command_line_over_them(data: Path, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('cell = "gru"\nhidden = 4\nmax-steps = 2\nworkers = 1\nembeddings = "none"\n')
    run_tenor("train", data, "--out", tmp_path / "run", "--config", tmp_path / "run.toml", "--hidden", "6").ok()
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert (settings["cell"], settings["hidden"], settings["max_steps"]) == ("gru", 6, 2)


def test_data_is_staged_once(data: Path, tmp_path: Path) -> None:
    results = [run(data, tmp_path / str(i), max_steps=3, stage=str(tmp_path / "cache")) for i in range(2)]
    assert results[0]["weights_sha256"] == run(data, tmp_path / "plain", max_steps=3)["weights_sha256"]
    assert len(list((tmp_path / "cache").rglob("manifest.json"))) == 1
