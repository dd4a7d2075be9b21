"""`--from RUN`: a run that starts from the weights of another one, on reviews of another kind."""

from __future__ import annotations

import json
import random
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import run_tenor
from helpers.corpora import PLAIN, Review, write_json_lines
from helpers.strategies import train_here
from helpers.together import train_together
from helpers.training import SMALL, load_whole
from safetensors.torch import load_file, save_file
from torch.nn import functional as F  # noqa: N812

import tenor
from tenor.errors import RunError, Stopped, StoreError, UsageError
from tenor.models.classifier import ReviewNetwork
from tenor.models.embedding import RowEmbedding
from tenor.progress import SILENT
from tenor.training.recipe import DataFacts, complete
from tenor.training.runs.ancestry import Ancestry, check_descent, descend
from tenor.training.tasks.reviews import Reviews

OPINIONS = 60  # words that praise in all reviews, and as many that complain
FINE, POOR = ("sturdy", "crisp", "cosy", "handy"), ("leaky", "flimsy", "noisy", "wobbly")  # only new reviews mean it


def reviews_of(rows: int, seed: int, *, is_new: bool) -> list[Review]:
    """Two of three rows have opinions that all reviews share; as many have words that tell only in new reviews."""
    rng = random.Random(seed)
    found = []
    for number in range(rows):
        negative = rng.random() < 0.5
        telling = [f"{'bad' if negative else 'good'}{rng.randrange(OPINIONS)}" for _ in range(2)]
        others = rng.choices((POOR if negative else FINE) if is_new else (*FINE, *POOR), k=2)
        text = rng.choices(PLAIN, k=8)
        text += (telling if rng.random() < 2 / 3 or not is_new else []) + (others if rng.random() < 2 / 3 else [])
        rng.shuffle(text)
        found.append(Review(" ".join([*text, f"n{number}"]), 1 if negative else 5))
    return found


@dataclass(frozen=True)
class Place:
    """A finished run on films, and prepared data of other reviews."""

    films: Path
    run: Path
    new: Path

    def settings(self, **changes: Any) -> tenor.TrainSettings:
        """Settings of a run from `run`, complete."""
        given = tenor.TrainSettings(workers=1, threads=1, from_run=str(self.run), **changes)
        return complete(descend(Ancestry.of(self.run), given), DataFacts(100, 1000))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("films")
    films = write_json_lines(folder / "films.jsonl", reviews_of(900, 1, is_new=False))
    tenor.prepare(films, folder / "films", tenor.PrepareSettings(workers=1))
    train_here(folder / "run", replace(SMALL, epochs=3, dropout=0.0), str(folder / "films"))
    new = write_json_lines(folder / "new.jsonl", reviews_of(400, 2, is_new=True))
    settings = tenor.PrepareSettings(workers=1, vocab=str(folder / "run"), valid_share=0.75, test_share=0.0)
    tenor.prepare(new, folder / "new", settings)
    return Place(folder / "films", folder / "run", folder / "new")


def accuracy(run: Path, data: Path) -> float:
    return tenor.evaluate(run, data, tenor.EvaluateSettings(split="valid", workers=1)).accuracy


def test_it_beats_the_old_run_and_training_from_scratch(place: Place, tmp_path: Path) -> None:
    tuned = train_here(tmp_path / "tuned", place.settings(), str(place.new))
    scratch = complete(replace(SMALL, epochs=30, batch_size=16), DataFacts(100, 1000))
    alone = train_here(tmp_path / "alone", scratch, str(place.new))
    old = accuracy(place.run, place.new)
    assert tuned["valid"]["accuracy"] > old + 0.05
    assert tuned["valid"]["accuracy"] > alone["valid"]["accuracy"] + 0.01
    assert accuracy(tmp_path / "tuned", place.new) == pytest.approx(tuned["valid"]["accuracy"], abs=0.01)


def test_it_starts_from_the_weights_and_keeps_the_words(place: Place) -> None:
    task = Reviews(place.new, place.settings())
    found, before = task.make_model().state_dict(), load_file(place.run / "model.safetensors")
    assert found.keys() == before.keys()
    for name in found.keys() - {"wide.importance", "wide.ngrams.weight"}:
        assert torch.equal(found[name], before[name]), name
    now, then = found["wide.importance"], before["wide.importance"]
    assert (now >= then).all()
    assert (now > then).any()  # n-grams that tell more about the new reviews
    adds, added = (state["wide.ngrams.weight"][:, 0] * state["wide.importance"] for state in (found, before))
    np.testing.assert_allclose(adds, added, rtol=1e-5, atol=1e-9)
    assert task.vocabulary is not None
    assert task.vocabulary.read_bytes() == (place.films / "vocab.json").read_bytes()
    task.close()


@pytest.fixture
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def deep(place: Place) -> Path:
    """A run without a wide part."""
    train_here(place.run.with_name("deep"), replace(SMALL, model="deep", max_steps=3), str(place.films))
    return place.run.with_name("deep")


AVERAGED = {"sync_every": 1}
CASES = {
    "single": (1, {}),
    "allreduce": (3, {"shares": "5:2:1"}),
    "local-sgd": (2, AVERAGED),
    "diloco": (2, {**AVERAGED, "outer_lr": 1.0, "outer_momentum": 0.0}),
    "model-parallel": (3, {}),
    "hybrid": (4, {}),
}


@pytest.mark.usefixtures("deep", "in_doubles")
@pytest.mark.parametrize("strategy", CASES)
def test_the_updates_equal_plain_pytorch(place: Place, deep: Path, strategy: str) -> None:
    """Compared with dense gradients of the mean loss and torch's SGD, from the weights in the run's file."""
    size, changes = CASES[strategy]
    plain = {"optimizer": "sgd", "momentum": 0.0, "clip": 0.0, "decay": "none", "warmup_epochs": 0.0, "lr": 0.2}
    quiet = {"dropout": 0.0, "input_dropout": 0.0, "word_dropout": 0.0, "precision": "fp64", "batch_size": 16}
    given = {**plain, **quiet, **changes, "strategy": strategy, "max_steps": 5, "epochs": 1}
    settings = replace(place, run=deep).settings(**given)
    task = Reviews(place.new, settings)
    loops = train_together(task, settings, size)

    model = ReviewNetwork(task.spec)
    model.load_state_dict({name: weight.double() for name, weight in load_file(deep / "model.safetensors").items()})
    for module in model.modules():
        if isinstance(module, RowEmbedding):
            module.weight.requires_grad_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for k in range(5):
        batch = load_whole(task, 0, k)
        logits = model(replace(batch, inputs=batch.rows["deep.embedding"][batch.inputs]))[0, :, 0]
        loss = F.binary_cross_entropy_with_logits(logits, batch.labels.to(logits))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for loop in loops:
        for name, weight in model.named_parameters():
            np.testing.assert_allclose(loop.saved_weights()[name], weight.detach(), rtol=1e-9, atol=1e-12, err_msg=name)
    task.close()


def test_the_run_decides_the_architecture(place: Place) -> None:
    settings, before = place.settings(epochs=7), json.loads((place.run / "config.json").read_text())["settings"]
    for name in (
        "model",
        "cell",
        "hidden",
        "ngrams",
        "ngram_bits",
        "embedding_dim",
        "pooling",
        "dropout",
        "word_dropout",
    ):
        assert getattr(settings, name) == before[name], name
    assert (settings.epochs, settings.embeddings) == (7, "none")
    assert settings.lr == 2e-3 / 2
    assert place.settings(dropout=0.3, lr=0.1).dropout == 0.3
    with pytest.raises(RunError, match="was trained with hidden 8, not 16; omit hidden, or train without from_run"):
        place.settings(hidden=16)


def test_what_contradicts_is_refused(place: Place, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="embeddings vectors has no effect with from_run"):
        tenor.TrainSettings(from_run="run", embeddings="vectors")
    with pytest.raises(UsageError, match="no effect with task points"):
        tenor.TrainSettings(from_run="run", task="points")
    with pytest.raises(RunError, match="is not a run folder"):
        tenor.train(place.new, tmp_path / "run", tenor.TrainSettings(from_run=str(place.films)))
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_bytes((place.run / "config.json").read_bytes())
    with pytest.raises(RunError, match="is not finished"):
        tenor.train(place.new, tmp_path / "run", tenor.TrainSettings(from_run=str(unfinished)))
    assert not (tmp_path / "run").exists()


def test_the_remedy_for_other_words_is_a_command_that_works(place: Place, tmp_path: Path) -> None:
    reviews = write_json_lines(tmp_path / "new reviews.jsonl", reviews_of(60, 3, is_new=True))
    letters = tenor.PrepareSettings(workers=1, clean="letters", stopwords="english", vocab_size=100)
    tenor.prepare(place.films.with_suffix(".jsonl"), tmp_path / "films", letters)
    train_here(tmp_path / "run", replace(SMALL, model="wide", max_steps=2), str(tmp_path / "films"))
    tenor.prepare(reviews, tmp_path / "data", tenor.PrepareSettings(workers=1))
    ancestry = Ancestry.of(tmp_path / "run")
    with pytest.raises(StoreError, match="with another vocabulary") as refused:
        check_descent(ancestry, tmp_path / "data", SILENT)
    line = refused.value.remedy.partition("`")[2].rstrip("`")
    run_tenor(*shlex.split(line)[1:], "--workers", "1").ok()
    check_descent(ancestry, tmp_path / "data-again", SILENT)


def test_the_ancestor_is_recorded_and_checked_on_resume(place: Place, tmp_path: Path) -> None:
    settings, data = place.settings(max_steps=4, epochs=2), str(place.new)
    whole = train_here(tmp_path / "whole", settings, data)
    config = json.loads((tmp_path / "whole/config.json").read_text())
    final = json.loads((place.run / "result.json").read_text())["weights_sha256"]
    assert config["ancestor"]["weights_sha256"] == final
    assert final in (tmp_path / "whole/README.md").read_text()

    asked = iter([0, 0, 15, 15, 15, 15])
    with pytest.raises(Stopped):
        train_here(tmp_path / "run", settings, data, signalled=lambda: next(asked, 15))
    assert train_here(tmp_path / "run", settings, data, resume=True)["weights_sha256"] == whole["weights_sha256"]

    other = tmp_path / "other"
    shutil.copytree(place.run, other)
    settings, asked = replace(settings, from_run=str(other)), iter([0, 15])
    with pytest.raises(Stopped):
        train_here(tmp_path / "late", settings, data, signalled=lambda: next(asked, 15))
    weights = load_file(other / "model.safetensors")
    save_file({**weights, "wide.bias": weights["wide.bias"] + 1}, other / "model.safetensors")
    with pytest.raises(RunError, match="started from other weights"):
        train_here(tmp_path / "late", settings, data, resume=True)


def test_the_command_line(place: Place, tmp_path: Path) -> None:
    line = (
        "train",
        place.new,
        "--from",
        place.run,
        "--out",
        tmp_path / "run",
        "--workers",
        "1",
        "--epochs",
        "1",
        "--json",
    )
    done = run_tenor(*map(str, line)).ok()
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["settings"]["from_run"] == str(place.run)
    assert run_tenor(*map(str, line), "--resume").ok().json["weights_sha256"] == done.json["weights_sha256"]
