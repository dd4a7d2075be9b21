"""The words task: its windows beside plain loops, its batches for any number of workers, and every strategy on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import train_here
from helpers.training import load_part, load_whole
from helpers.workers import spawn_workers

import tenor
from tenor.embedding.kernels.windows import BREAK
from tenor.embedding.planted import plant
from tenor.embedding.questions import score_file
from tenor.errors import UsageError
from tenor.groups import Alone
from tenor.models.deep.masks import sample_keys
from tenor.models.skipgram import NONE
from tenor.training.launching.launch import check_source
from tenor.training.recipe import complete
from tenor.training.runs.folder import RunFolder
from tenor.training.tasks.windows import make_windows
from tenor.training.tasks.words import Words

TEXT = np.array([0, 1, 2, 3, 4, BREAK, 5, 1, BREAK, 2], np.int32)
COUNTS = np.array([1, 2, 2, 1, 1, 1])
SETTINGS = complete(
    tenor.TrainSettings(
        task="words", threads=1, workers=1, batch_size=256, embedding_dim=16, lr=0.005, epochs=3, keep="last"
    ),
    None,
)


def test_neighbours_stay_within_the_reach_and_the_text() -> None:
    windows = make_windows(TEXT, COUNTS, 0.0, 3, 2, seed=0)
    texts = [[0, 1, 2, 3, 4], [5, 1], [2]]
    places = [(text, at) for text in texts for at in range(len(text))]
    assert windows.text[windows.middles].tolist() == [text[at] for text, at in places]
    seen: list[set[int]] = [set() for _ in places]
    for epoch in range(60):
        rows = np.arange(len(places))
        far, near = windows.sample(rows, sample_keys(1, epoch, rows))
        assert far[0].tolist() == [text[at] for text, at in places]
        for row, (text, at) in enumerate(places):
            column = near[:, row].tolist()
            found = [word for word in column if word != NONE]
            assert column == found + [NONE] * (len(column) - len(found))
            reaches = [
                reach
                for reach in (1, 2, 3)
                if Counter(found) == Counter(text[max(0, at - reach) : at] + text[at + 1 : at + 1 + reach])
            ]
            assert reaches, (text, at, found)
            seen[row] |= set(reaches)
    assert seen[2] == {1, 2, 3} and seen[0] == {1, 2, 3}


def test_noise_words_and_left_out_words_follow_their_shares() -> None:
    counts = np.array([8000, 1000, 100])
    text = np.repeat(np.arange(3), counts).astype(np.int32)
    windows = make_windows(text, counts, 0.01, 2, 20, seed=3)
    ratio = counts / (0.01 * counts.sum())
    kept = np.bincount(windows.text, minlength=3) / counts
    np.testing.assert_allclose(kept, np.minimum(1, (np.sqrt(ratio) + 1) / ratio), rtol=0.1)
    rows = np.arange(len(windows.middles))
    far, _ = windows.sample(rows, sample_keys(0, 0, rows))
    drawn = np.bincount(far[1:].ravel(), minlength=3) / far[1:].size
    np.testing.assert_allclose(drawn, counts**0.75 / (counts**0.75).sum(), rtol=0.1)


@pytest.fixture(scope="module")
def task() -> Words:
    return Words(Path("nowhere/words"), SETTINGS)


def test_batches_are_the_same_for_any_number_of_workers(task: Words) -> None:
    whole = load_whole(task, 1, 3)
    for size in (2, 5):
        parts = [load_part(task, 1, 3, rank, np.ones(size)) for rank in range(size)]
        assert torch.equal(torch.cat([part.inputs for part in parts], dim=1), whole.inputs)
        for part in parts:
            assert part.global_weight == 256 and part.rows.keys() == whole.rows.keys()
            assert all(torch.equal(part.rows[name], rows) for name, rows in whole.rows.items())
    far, near = task.windows.sample(rows := task.order.batch(1, 3), sample_keys(0, 1, rows))
    ids = whole.inputs.numpy()
    np.testing.assert_array_equal(whole.rows["outputs"].numpy()[ids[:6]], far)
    found = np.where(ids[6:] == NONE, NONE, whole.rows["inputs"].numpy()[ids[6:]])
    np.testing.assert_array_equal(found, near)
    assert whole.rows["inputs"].tolist() == sorted(set(near.ravel().tolist()) - {NONE})


def test_held_out_windows_are_not_trained_on(task: Words) -> None:
    trained = np.concatenate([task.order.batch(0, k) for k in range(task.order.num_batches)])
    held = np.concatenate([task.splits["valid"], task.splits["test"]])
    assert len(np.unique(trained)) == len(trained) and not np.isin(held, trained).any()
    assert len(trained) + len(held) == len(task.windows.middles)


def train_rank(out: str, changes: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    return train_here(Path(out), replace(SETTINGS, **changes), "words")


LOCAL = {"sync_every": 8}
HOW: dict[str, tuple[int, dict[str, Any]]] = {
    "single": (1, {}),
    "allreduce": (2, {}),
    "local-sgd": (2, LOCAL),
    "diloco": (2, LOCAL),
    "hogwild": (2, LOCAL),
    "async": (3, {}),
    "model-parallel": (2, {}),
    "hybrid": (4, {"model_parallel": 2}),
}
# The ordinary run sums gradients; the others take long, so they are in `make soak`.
OTHERS = [pytest.param(name, marks=pytest.mark.soak) for name in HOW if name != "allreduce"]


@pytest.mark.parametrize("strategy", ["allreduce", *OTHERS])
def test_every_strategy_learns_the_planted_similarities(strategy: str, task: Words, tmp_path: Path) -> None:
    size, more = HOW[strategy]
    call = {"out": str(tmp_path / "run"), "changes": {"strategy": strategy, **more}}
    result = spawn_workers(size, f"{__file__}:train_rank", 120, **call)[0]
    assert result["valid"]["accuracy"] > 0.6 and result["valid"]["log_loss"] < 0.68
    model = task.make_model()
    model.load_state_dict(RunFolder(tmp_path / "run").load_model(model.state_dict()))
    (tmp_path / "q.tsv").write_text(plant(1).questions())
    start = score_file(task.vectors(task.make_model()), tmp_path / "q.tsv")["spearman"]
    assert abs(start) < 0.1 and score_file(task.vectors(model), tmp_path / "q.tsv")["spearman"] > 0.55
    again = task.measure(model, "valid", Alone())
    assert again is not None and again.accuracy == pytest.approx(result["valid"]["accuracy"], abs=1e-3)


def test_a_text_file_is_read_and_a_missing_one_refused(tmp_path: Path) -> None:
    planted = plant(300)
    lines = [" ".join(planted.words[word] for word in text) for text in planted.texts]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    found = Words(tmp_path / "text.txt", SETTINGS)
    assert found.counted.total == 3600 and len(found.counted.words) <= 400
    check_source(tmp_path / "text.txt", "words")
    check_source(Path("words"), "words")
    with pytest.raises(UsageError, match="does not exist"):
        check_source(tmp_path / "none.txt", "words")
