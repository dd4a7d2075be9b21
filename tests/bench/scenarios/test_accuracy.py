"""Scenario `accuracy`: the same rows for all methods, peers against references, and seeds. Training is replaced."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.corpora import Review, make_reviews, write_json_lines
from sklearn.feature_extraction.text import CountVectorizer

import tenor
from tenor.bench.peers.classifiers import fast_text, linear, run
from tenor.bench.peers.classifiers.base import Given, accuracy_of, choose_best
from tenor.bench.peers.classifiers.reviews import LabelledTexts, read_reviews, words, write_reviews
from tenor.bench.scenarios import accuracy
from tenor.bench.scenarios.accuracy import trials as trying
from tenor.bench.scenarios.accuracy.reviews import UNKNOWN_WORD, share_rows
from tenor.bench.settings import BenchSettings
from tenor.errors import MissingExtra, UsageError, WorkerError
from tenor.progress import SILENT
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split


def reviews(count: int, seed: int) -> LabelledTexts:
    found = make_reviews(count, seed=seed)
    return LabelledTexts([review.text for review in found], [int(review.rating > 3) for review in found])


@pytest.fixture(scope="module")
def given() -> Given:
    return Given(reviews(300, 1), reviews(60, 2), seed=3, threads=1, budget=1.0)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """LabelledTexts with neutral ones, duplicates with different stars, and one without words."""
    found = [*make_reviews(160, seed=4), *make_reviews(30, seed=4), Review("!..", 3), Review("…", 5)]
    found += [Review(review.text, 1) for review in make_reviews(10, seed=4)]
    return write_json_lines(tmp_path / "reviews.jsonl", found)


@pytest.mark.soak
def test_every_method_gets_the_rows_of_the_prepared_splits(raw: Path, tmp_path: Path) -> None:
    shared = share_rows(BenchSettings(data=str(raw)), 5, tmp_path / "out")
    manifest = Manifest.load(shared.data)
    vocabulary = json.loads((shared.data / "vocab.json").read_text("utf-8"))["words"]
    for name, count in shared.rows.items():
        found = read_reviews(shared.texts / f"{name}.jsonl")
        assert len(found) == count == manifest.splits[name].rows
        with open_split(shared.data, name) as split:
            tokens, lengths = split.gather(np.arange(len(split)))
            rows = np.split(tokens, np.cumsum(lengths)[:-1])
            stored = Counter(
                (" ".join(vocabulary[token - 2] for token in row if token > 1), int(label))
                for row, label in zip(rows, split.labels, strict=True)
            )
        known = set(vocabulary)
        read = [" ".join(word for word in words(text).split() if word in known) for text in found.texts]
        assert Counter(zip(read, found.labels, strict=True)) == stored
    other = share_rows(BenchSettings(data=str(raw)), 6, tmp_path / "other")
    assert read_reviews(other.texts / "test.jsonl") != read_reviews(shared.texts / "test.jsonl")


def test_prepared_data_keeps_its_splits(raw: Path, tmp_path: Path) -> None:
    tenor.prepare([raw], tmp_path / "data", tenor.PrepareSettings(workers=1, vocab_size=20, test_share=0.3))
    shared = share_rows(BenchSettings(data=str(tmp_path / "data")), 0, tmp_path / "out")
    found = read_reviews(shared.texts / "test.jsonl")
    assert shared.data == tmp_path / "data" and shared.prepare_seconds == 0
    with open_split(shared.data, "test") as split:
        assert found.labels == split.labels.tolist()
        assert [len(text.split()) for text in found.texts] == split.lengths.tolist()
    assert any(UNKNOWN_WORD in text for text in found.texts)


def test_other_classes_and_empty_splits_are_refused(tmp_path: Path) -> None:
    raw = write_json_lines(tmp_path / "reviews.jsonl", make_reviews(60, seed=1))
    tenor.prepare([raw], tmp_path / "no-valid", tenor.PrepareSettings(workers=1, valid_share=0.0))
    with pytest.raises(UsageError, match="the split valid has no rows; give more rows"):
        share_rows(BenchSettings(data=str(tmp_path / "no-valid")), 0, tmp_path / "out")
    tenor.prepare([raw], tmp_path / "stars", tenor.PrepareSettings(workers=1, labels="stars"))
    with pytest.raises(UsageError, match="and the scenario compares two"):
        share_rows(BenchSettings(data=str(tmp_path / "stars")), 0, tmp_path / "out")


def test_words() -> None:
    assert words("It's <br/>NOT bad... at all!") == "it's not bad . . . at all !"


def test_log_count_ratios_by_hand() -> None:
    found = CountVectorizer(binary=True).fit(["good film", "bad film"])
    ratio = linear.log_count_ratio(found.transform(["good good film", "good", "bad film"]), np.array([1, 1, 0]))
    # positive: bad 1 + 0, film 1 + 1, good 1 + 2; negative: bad 1 + 1, film 1 + 1, good 1 + 0
    expected = [math.log((p / 6) / (q / 5)) for p, q in ((1, 2), (2, 2), (3, 1))]
    assert ratio == pytest.approx(expected)


def test_the_scale_of_margins_by_a_finer_search() -> None:
    rng = np.random.default_rng(0)
    margins = rng.normal(0, 1, 4000)
    labels = (rng.random(4000) < 1 / (1 + np.exp(-3 * margins))).astype(int)  # the best factor is 3
    assert linear.fit_scale(margins, labels) == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("method", ["nbsvm-2", "nbsvm-3", "tfidf"])
def test_linear_peers_learn(given: Given, method: str) -> None:
    fitted = run.METHODS[method](given)
    test = reviews(200, 9)
    chances = fitted.chances(test.texts)
    assert chances.shape == (200,) and chances.min() >= 0 and chances.max() <= 1
    assert accuracy_of(chances, test.labels) > 0.85
    assert fitted.size > 0 and fitted.seconds > 0 and fitted.choice_seconds > 0 and fitted.chosen.startswith("C=")


def test_the_majority_is_that_of_the_training_rows() -> None:
    fitted = linear.majority(Given(LabelledTexts(["a"] * 4, [1, 1, 1, 0]), LabelledTexts([], []), 0, 1))
    assert fitted.chances(["b", "c"]).tolist() == [0.75, 0.75]


FASTTEXT = """
import json, sys
from pathlib import Path
from tenor.bench.peers.classifiers import fast_text
from tenor.bench.peers.classifiers.base import Given, accuracy_of
from tenor.bench.peers.classifiers.reviews import read_reviews
train, test = (read_reviews(Path(sys.argv[1], f"{name}.jsonl")) for name in ("train", "test"))
given = Given(train, train, seed=3, threads=1, budget=1.0)
options = [{"lr": 1e-5, "epoch": 1, "wordNgrams": 2}, {"lr": 0.5, "epoch": 20, "wordNgrams": 2}]
fitted = fast_text.grid(given, options)
chances = fitted.chances(test.texts)
assert 0 <= chances.min() and chances.max() <= 1 and fitted.size > 1000
print(json.dumps([fitted.chosen, accuracy_of(chances, test.labels)]))
"""


def test_fasttext_learns_and_chooses(given: Given, tmp_path: Path) -> None:
    """In a process of its own, as in the scenario. Without pairs of words, this build of fastText may compute NaN."""
    for name, found in (("train", given.train), ("test", reviews(200, 9))):
        write_reviews(tmp_path / f"{name}.jsonl", found.texts, found.labels)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", FASTTEXT, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    chosen, accuracy = json.loads(done.stdout)
    assert chosen == "lr=0.5 epoch=20 wordNgrams=2" and accuracy > 0.85


class FakeModel:
    """Says positive for texts that contain its word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def predict(self, texts: list[str]) -> tuple[list[list[str]], list[list[float]]]:
        return [[f"__label__{int(self.word in text)}"] for text in texts], [[0.75 if text else 1.1] for text in texts]

    def save_model(self, file: str) -> None:
        Path(file).write_bytes(b"123")


def fake_fasttext(monkeypatch: pytest.MonkeyPatch, failures: int) -> list[dict[str, Any]]:
    """Replace fastText: training with lr 9 always fails, and other training the first `failures` times."""
    asked: list[dict[str, Any]] = []

    def train(file: str, **options: Any) -> FakeModel:
        asked.append({**options, "text": Path(file).read_text("utf-8")})
        if options.get("lr") == 9 or len(asked) <= failures:
            raise RuntimeError("Encountered NaN.")
        return FakeModel("good" if options.get("lr", 1) == 1 else "bad")

    monkeypatch.setitem(sys.modules, "fasttext", SimpleNamespace(train_supervised=train))
    return asked


TWO = LabelledTexts(["good film", "bad film"], [1, 0])


def test_fasttext_chooses_by_validation_and_survives_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_fasttext(monkeypatch, failures=0)
    fitted = fast_text.grid(Given(TWO, TWO, 5, 2), [{"lr": 9}, {"lr": 2}, {"lr": 1}])
    assert fitted.chosen == "lr=1 (1 of 3 settings failed)" and fitted.size == 3
    assert fitted.chances(["so good", "so bad", ""]).tolist() == pytest.approx([0.75, 0.25, 0.0])
    assert asked[0]["text"] == "__label__1 good film\n__label__0 bad film\n"
    assert all((one["seed"], one["thread"]) == (5, 2) for one in asked)
    with pytest.raises(WorkerError, match="fails with every setting"):
        fast_text.grid(Given(TWO, TWO, 5, 2), [{"lr": 9}])


def test_autotune_gets_its_budget_and_another_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_fasttext(monkeypatch, failures=2)
    fitted = fast_text.autotune(Given(TWO, TWO, 5, 2, budget=41.6))
    assert [one["autotuneDuration"] for one in asked] == [42, 42, 42] and len({one["seed"] for one in asked}) == 3
    assert fitted.chances(["good"]).tolist() == [0.75] and fitted.chosen == "42 s"
    fake_fasttext(monkeypatch, failures=99)
    with pytest.raises(WorkerError, match="autotune"):
        fast_text.autotune(Given(TWO, TWO, 5, 2, budget=0.1))


def test_the_first_best_candidate_is_chosen() -> None:
    accuracies = {"a": 0.5, "b": 0.9, "c": 0.9}
    best, others = choose_best(list(accuracies), lambda name: (name, name.upper(), accuracies[name]))
    assert (best.name, best.model) == ("b", "B") and others >= 0


def test_a_peer_writes_the_probabilities_of_the_test_texts(tmp_path: Path) -> None:
    for index, name in enumerate(("train", "valid", "test")):
        found = reviews(80, index)
        write_reviews(tmp_path / f"{name}.jsonl", [text.upper() for text in found.texts], found.labels)
    job = {"method": "nbsvm-2", "folder": str(tmp_path), "out": str(tmp_path / "out.npy"), "seed": 0}
    told = run.run_method({**job, "threads": 1, "budget": 0.0}, read_reviews(tmp_path / "test.jsonl").texts)
    chances = np.load(tmp_path / "out.npy", allow_pickle=False)
    assert accuracy_of(chances, reviews(80, 2).labels) > 0.8
    assert {"seconds", "choice_seconds", "prepare_seconds", "size_mb", "reviews_per_s"} < set(told)


def test_the_speed_of_a_run_is_that_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SimpleNamespace(threads=2, probabilities=lambda texts: np.full((len(texts), 2), 0.5))
    monkeypatch.setattr("tenor.runtime.model.load", lambda run: model)
    assert run.speed_of_run("run", ["good film"] * 9)["reviews_per_s"] > 0
    assert model.threads == 1


class FakeTrials(trying.Trials):
    """Figures without training: `default` takes 40 s + the seed, other methods take what they are allowed."""

    def _preset(self, name: str, rows: Any, seed: int) -> dict[str, Any]:
        self.log.append((name, seed))
        return {"accuracy": 0.9 + seed / 100, "seconds": 40.0 + seed}

    def _run_peer(self, job: dict[str, Any]) -> dict[str, Any]:
        labels = read_reviews(Path(job["folder"], "test.jsonl")).labels
        np.save(job["out"], np.array(labels) * 0.5 + 0.25, allow_pickle=False)
        return {"seconds": job["budget"], "chosen": f"seed {job['seed']}"}

    log: list[tuple[str, int]] = []  # noqa: RUF012 - one log for the one instance of a test


def test_seeds_are_shared_and_autotune_takes_the_time_of_default(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "Trials", FakeTrials)
    monkeypatch.setattr(accuracy, "warm_up", lambda presets, folder: None)
    monkeypatch.setattr(FakeTrials, "log", [])
    settings = BenchSettings(data=str(raw), repeats=2, rows="fasttext-autotune,default,majority")
    result = accuracy.run(settings, tmp_path, SILENT)
    rows = {row["name"]: row for row in result.rows}
    assert FakeTrials.log == [("default", 0), ("default", 1)]  # once per seed, although two rows need it
    assert rows["fasttext-autotune"]["spread"]["seconds"]["values"] == [40.0, 41.0]
    assert rows["default"]["mean_accuracy"] == pytest.approx(0.905)
    assert rows["default"]["sd_accuracy"] == pytest.approx(0.01 / math.sqrt(2))
    assert rows["majority"]["accuracy"] == 1.0 and rows["majority"]["chosen"] == "seed 0, seed 1"
    counts = [rows["majority"][f"{name}_rows"] for name in ("train", "valid", "test")]
    assert sum(counts) == 160  # without duplicates and the rows without words or with 3 stars


def test_wrong_options_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"data must name reviews \(got 'nowhere'\)"):
        accuracy.run(BenchSettings(data="nowhere"), tmp_path, SILENT)
    with pytest.raises(UsageError, match="unknown name 'svm'"):
        accuracy.run(BenchSettings(data=str(tmp_path), rows="svm"), tmp_path, SILENT)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="the row tfidf needs the extra 'peers'"):
        accuracy.run(BenchSettings(data=str(tmp_path), rows="tfidf"), tmp_path, SILENT)
