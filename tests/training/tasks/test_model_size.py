"""A model that cannot fit is refused before anything of its size is allocated."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.training import SMALL, as_only_rank

import tenor
from tenor.errors import RunError, Stopped, UsageError
from tenor.models.spec import DeepSpec, ModelSpec
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.training.tasks import model_size
from tenor.training.tasks.model_size import refuse_too_large
from tenor.world import World

DEEP = DeepSpec(vocab_size=1000, embedding_dim=100, hidden=100, layers=1)  # 100,000 numbers are the word vectors
SPEC = ModelSpec(deep=DEEP)


def test_a_model_larger_than_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_too_large(SPEC)
    with pytest.raises(UsageError, match=r"weights of this model need .* GiB, .*choose a smaller hidden"):
        refuse_too_large(ModelSpec(deep=replace(DEEP, hidden=1 << 16, layers=256)))
    monkeypatch.setattr(model_size, "memory_bytes", lambda: 1 << 50)
    with pytest.raises(UsageError, match=r"a run folder may hold 8\.0 GiB"):
        refuse_too_large(ModelSpec(deep=replace(DEEP, hidden=1 << 15)))
    monkeypatch.setattr(model_size, "memory_bytes", lambda: 400_000)  # a bit less than the word vectors and the cell
    with pytest.raises(UsageError, match="this machine has"):
        refuse_too_large(SPEC)
    monkeypatch.setattr(model_size, "memory_bytes", lambda: 0)  # unknown
    refuse_too_large(SPEC)


def test_a_model_far_larger_than_its_checkpoint_is_refused(tmp_path: Path) -> None:
    refuse_too_large(SPEC, tmp_path)  # without a checkpoint, training starts from the beginning
    (tmp_path / "checkpoints").mkdir()
    part = tmp_path / "checkpoints" / "step-0000000007.safetensors"
    part.touch()
    os.truncate(part, 400_000)
    refuse_too_large(SPEC, tmp_path)
    refuse_too_large(ModelSpec(deep=replace(DEEP, vocab_size=900)), tmp_path)
    with pytest.raises(RunError, match="checkpoints are those of a much smaller model"):
        refuse_too_large(ModelSpec(deep=replace(DEEP, vocab_size=10_000)), tmp_path)


def test_the_settings_of_a_stopped_run_do_not_decide_how_much_is_allocated(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    with pytest.raises(Stopped):
        train_as(World(), TrainingJob(str(data), str(out), SMALL, False), lambda event: None, lambda: signal.SIGTERM)
    config = json.loads((out / "config.json").read_text())
    for name, value in {"hidden": 4000, "embedding_dim": 30_000, "ngram_bits": 24}.items():
        changed = {**config, "settings": {**config["settings"], name: value}}
        (out / "config.json").write_text(json.dumps(changed))
        with as_only_rank(), pytest.raises(RunError, match="checkpoints are those of a much smaller model"):
            tenor.train(data, out, resume=True)
    (out / "config.json").write_text(json.dumps(config))
    with as_only_rank():
        assert tenor.train(data, out, resume=True).values["steps"] == 76
