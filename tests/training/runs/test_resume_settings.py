"""A resumed run takes its settings from its config.json; changes that affect the weights are refused."""

from __future__ import annotations

import contextlib
import json
import signal
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from helpers.command import call_tenor

import tenor
from tenor import TrainSettings
from tenor.errors import RunError, Stopped, TenorError
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.training.launching.launch import train
from tenor.training.recipe import complete
from tenor.training.runs.config import FORMAT
from tenor.training.runs.resume import MAY_CHANGE, STOP_RULES, finished_result, inherit
from tenor.world import World

BEGUN = complete(
    TrainSettings(
        task="points",
        workers=2,
        lr=0.01,
        epochs=7,
        dropout=0.1,
        class_weights="2,1,1,1",
        decay="cosine",
        warmup_epochs=0.5,
        clip=0.3,
        loss="focal",
        weight_decay=0.01,
        optimizer="sgd",
        momentum=0.8,
        threads=1,
    ),
    None,
)


def begin(run: Path, settings: TrainSettings = BEGUN) -> Path:
    run.mkdir(exist_ok=True)
    (run / "config.json").write_text(json.dumps({"format": FORMAT, "settings": vars(settings)}))
    return run


def test_everything_that_is_not_given_is_inherited(tmp_path: Path) -> None:
    run = begin(tmp_path)
    assert inherit(run, TrainSettings(resume=True)) == replace(BEGUN, resume=True)
    assert inherit(run, TrainSettings(resume=True, hidden=128), given={"resume"}) == replace(BEGUN, resume=True)
    assert inherit(tmp_path / "new", TrainSettings(resume=True)) == TrainSettings(resume=True)


@pytest.mark.parametrize("value", ["x", [1], {"a": 1}, True, None, 1.5, 10**18, "9" * 400])
def test_settings_of_a_stranger_s_run_are_refused_in_one_line(tmp_path: Path, value: Any) -> None:
    """Each setting in turn has a value that no version of Tenor writes, or one of another type."""
    for field in fields(TrainSettings):
        stored = {"format": FORMAT, "settings": {**vars(BEGUN), field.name: value}}
        (tmp_path / "config.json").write_text(json.dumps(stored))
        try:
            found = inherit(tmp_path, TrainSettings(resume=True), given={"resume"})
        except TenorError as error:
            assert len(str(error)) < 400 and "\n" not in str(error), field.name
        else:
            kept = getattr(found, field.name)
            assert type(kept) in (type(getattr(BEGUN, field.name)), type(field.default), str), field.name


def test_a_run_does_not_choose_where_copies_go_nor_how_many_processes_start(tmp_path: Path) -> None:
    run = begin(tmp_path, replace(BEGUN, stage="/home/somebody"))
    assert inherit(run, TrainSettings(resume=True)).stage is None
    assert inherit(run, TrainSettings(resume=True, stage="cache")).stage == "cache"
    for name, value in (("workers", 100_000), ("threads", 1 << 40)):
        run = begin(tmp_path, replace(BEGUN, **{name: value}))
        with pytest.raises(RunError, match=f"was started with {name} {value}, too many for this machine; give {name}"):
            inherit(run, TrainSettings(resume=True))
        assert vars(inherit(run, TrainSettings(resume=True), given={name}))[name] == vars(TrainSettings())[name]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lr": 0.5}, "was started with lr 0.01, not 0.5; omit lr"),
        ({"epochs": 9}, "epochs 7, not 9"),
        ({"dropout": 0.5}, "dropout 0.1, not 0.5"),
        ({"class_weights": "auto"}, "class_weights 2,1,1,1, not auto"),
        ({"decay": "none"}, "decay cosine, not none"),
        ({"warmup_epochs": 0.0}, "warmup_epochs 0.5, not 0.0"),
        ({"clip": 0.0}, "clip 0.3, not 0.0"),
        ({"loss": "mse"}, "loss focal, not mse"),
        ({"weight_decay": 0.1}, "weight_decay 0.01, not 0.1"),
        ({"keep": "last"}, "keep best, not last"),
        ({"seed": 3}, "seed 0, not 3"),
        ({"word_dropout": 0.1}, "word_dropout 0.0, not 0.1"),
        ({"precision": "bf16"}, "precision fp32, not bf16"),
    ],
)
def test_what_shapes_the_weights_cannot_change(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said):
        inherit(begin(tmp_path), TrainSettings(resume=True, **changes))


def test_a_default_that_was_typed_is_refused_like_any_other_value(tmp_path: Path) -> None:
    run = begin(tmp_path)
    assert inherit(run, TrainSettings(resume=True, clip=1.0)).clip == 0.3  # a default: nobody asked for it
    with pytest.raises(RunError, match=r"clip 0\.3, not 1\.0"):
        inherit(run, TrainSettings(resume=True, clip=1.0), given={"clip"})
    assert inherit(run, TrainSettings(resume=True, clip=0.3), given={"clip"}).clip == 0.3


def test_where_and_how_fast_may_change(tmp_path: Path) -> None:
    """Every other setting is fixed."""
    run = begin(tmp_path)
    changes: dict[str, Any] = {"workers": "3", "threads": 2, "strategy": "local-sgd", "backend": "gloo", "timeout": 9.0}
    changes |= {"device": "cpu", "checkpoint_steps": 7, "max_restarts": 3, "max_seconds": 5.0, "max_steps": 80}
    changes |= {"keep_checkpoints": 3, "tensorboard": True, "test": False, "balance": "off", "shares": "1:2:3"}
    found = inherit(run, TrainSettings(resume=True, **changes), given=changes)
    assert found == replace(BEGUN, resume=True, **changes)
    assert {field.name for field in fields(TrainSettings)} >= MAY_CHANGE | STOP_RULES


def test_a_longer_run_is_allowed_where_the_rate_does_not_depend_on_its_length(tmp_path: Path) -> None:
    run = begin(tmp_path, replace(BEGUN, decay="none"))
    assert inherit(run, TrainSettings(resume=True, epochs=9)).epochs == 9
    with pytest.raises(RunError, match="epochs 7, not 2"):
        inherit(run, TrainSettings(resume=True, epochs=2))


def test_another_strategy_drops_what_it_has_no_use_for(tmp_path: Path) -> None:
    apart = replace(BEGUN, strategy="local-sgd", sync_every=4)
    found = inherit(begin(tmp_path, apart), TrainSettings(resume=True, strategy="hogwild"))
    assert (found.strategy, found.sync_every) == ("hogwild", 4)
    found = inherit(tmp_path, TrainSettings(resume=True, strategy="allreduce"))
    assert (found.strategy, found.sync_every) == ("allreduce", 16)
    with pytest.raises(RunError, match="sync_every 4, not 8"):
        inherit(tmp_path, TrainSettings(resume=True, sync_every=8))
    squeezed = replace(BEGUN, strategy="allreduce", compress="top-k", top_k=0.1, balance="epoch", shares="2:1")
    begin(tmp_path, squeezed)
    assert inherit(tmp_path, TrainSettings(resume=True)) == replace(squeezed, resume=True)
    found = inherit(tmp_path, TrainSettings(resume=True, strategy="local-sgd"))
    assert (found.compress, found.top_k, found.balance, found.shares) == ("none", 0.01, "off", "2:1")
    found = inherit(tmp_path, TrainSettings(resume=True, strategy="async"))
    assert (found.compress, found.top_k, found.balance, found.shares) == ("top-k", 0.1, "off", "")


def test_another_number_of_workers_drops_what_was_said_of_each(tmp_path: Path) -> None:
    run = begin(tmp_path, replace(BEGUN, shares="5:2", token_caps="9000", slowdown="1:3"))
    found = inherit(run, TrainSettings(resume=True, workers=3))
    assert (found.shares, found.token_caps, found.slowdown) == ("", "9000", "")
    assert inherit(run, TrainSettings(resume=True)).shares == "5:2"
    assert inherit(run, TrainSettings(resume=True), is_launched=True).workers == "auto"  # the launcher knows


def test_a_finished_run_cannot_be_made_longer(tmp_path: Path) -> None:
    run = begin(tmp_path, replace(BEGUN, decay="none"))
    result = {"steps": 9, "seconds": 1.5, "samples_per_s": 80.0, "valid": {}, "test": {}}
    (run / "result.json").write_text(json.dumps(result))
    assert finished_result(run, tmp_path, vars(inherit(run, TrainSettings(resume=True)))) == result
    for changes in ({"epochs": 9}, {"max_steps": 5}, {"patience": 2}):
        longer = inherit(run, TrainSettings(resume=True, **changes))  # type: ignore[arg-type]
        with pytest.raises(RunError, match="was finished with"):
            finished_result(run, tmp_path, vars(longer))


def test_the_command_knows_what_was_typed(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    resume = ("train", "points", "--out", run, "--resume")
    assert "was started with --epochs 7, not 3" in call_tenor(*resume, "--epochs", "3").failed(1)
    (tmp_path / "run.toml").write_text("lr = 0.002\n")
    assert "was started with --lr 0.01, not 0.002" in call_tenor(*resume, "--config", tmp_path / "run.toml").failed(1)


@pytest.mark.parametrize("launcher", ["ours", "torchrun restarts"])
def test_the_workers_are_told_the_run_s_settings(
    launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[TrainingJob] = []

    def note(job: TrainingJob, *_: Any) -> dict[str, Any]:
        jobs.append(job)
        return {}

    monkeypatch.setattr("tenor.training.launching.launch._supervise", note)
    monkeypatch.setattr("tenor.training.assemble.train_as", lambda world, job, *rest: note(job))
    monkeypatch.setattr("tenor.training.launching.worker.listen", lambda: lambda: 0)
    settings = TrainSettings(resume=launcher == "ours", max_restarts=2, threads=1)
    if launcher != "ours":
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "1"}.items():
            monkeypatch.setenv(name, value)
    train("points", begin(tmp_path / "run"), settings)
    workers = "2" if launcher == "ours" else "auto"
    assert jobs[0].resume
    assert jobs[0].settings == replace(BEGUN, resume=settings.resume, max_restarts=2, workers=workers)


def test_a_run_resumed_without_its_options_ends_like_one_that_was_never_stopped(tmp_path: Path) -> None:
    begun = complete(
        TrainSettings(task="points", workers=1, threads=1, hidden=8, batch_size=5000, epochs=2, lr=0.05), None
    )
    results = []
    for name, came in (("whole", iter([0] * 99)), ("run", iter([0, 0, 0, signal.SIGTERM]))):
        (tmp_path / name).mkdir()
        job = TrainingJob("points", str(tmp_path / name), begun, resume=False)
        with contextlib.suppress(Stopped):
            results.append(train_as(World(), job, lambda event: None, came.__next__))
    (whole,) = results
    found = tenor.train("points", tmp_path / "run", TrainSettings(resume=True)).as_dict()
    assert (found["steps"], found["weights_sha256"]) == (whole["steps"], whole["weights_sha256"])
