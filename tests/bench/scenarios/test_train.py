"""Scenario `train`: its peers train the same model on the same reviews, and its rates ignore the first steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.corpora import make_reviews, write_json_lines

import tenor
from tenor.bench.peers.datasets import Fixed, Ragged, write_fixed
from tenor.bench.peers.plain import PlainClassifier
from tenor.bench.peers.processes import run_together
from tenor.bench.scenarios import train as scenario
from tenor.bench.scenarios.train.ratios import add_ratios, flops_per_token
from tenor.bench.scenarios.train.runs import Outcome, run_alone, run_plain, run_tenor
from tenor.bench.settings import BenchSettings
from tenor.bench.step_rates import Steps, read_run
from tenor.errors import UsageError, WorkerError
from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.part import initialise
from tenor.models.inference import Inference
from tenor.models.spec import DeepSpec, ModelSpec
from tenor.store.reader import open_split

Run = Callable[[Path, tenor.TrainSettings, int], Outcome]
TINY = replace(scenario.MAIN, embedding_dim=8, hidden=8, batch_size=64)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    tenor.prepare([write_json_lines(folder / "reviews.jsonl", make_reviews(600, seed=1))], folder / "data", workers=1)
    return folder / "data"


@pytest.mark.parametrize("layers", [1, 2])
def test_the_peer_is_the_same_model(data: Path, layers: int) -> None:
    whole = ReviewNetwork(ModelSpec(deep=DeepSpec(40, "lstm", 6, 8, layers, pooling="max")))
    whole.combination.start()
    ours = whole.deep
    assert ours is not None
    initialise(ours, 0)
    peer = PlainClassifier({"vocab_size": 40, "embedding_dim": 6, "hidden": 8, "layers": layers, "pooling": "max"})
    with torch.no_grad():
        peer.embedding.weight.copy_(ours.embedding.weight)
        peer.head.load_state_dict(ours.head.state_dict())
        for layer, cell in enumerate(ours.forwards):
            for name, weight in cell.named_parameters():
                getattr(peer.lstm, name.replace("l0", f"l{layer}")).copy_(weight)
    rows = [np.arange(2, 9), np.array([30]), np.array([5, 6, 39])]
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    tokens, counts, _ = Ragged.collate([(torch.from_numpy(row), len(row), 1.0) for row in rows])
    expected = Inference(whole).probabilities(np.concatenate(rows).astype(np.int32), lengths)
    np.testing.assert_allclose(peer(tokens, counts).sigmoid().detach().numpy(), expected, rtol=1e-5)


def test_rows_of_one_length_hold_the_same_tokens(data: Path, tmp_path: Path) -> None:
    write_fixed(data, tmp_path / "rows.h5", 12)
    dataset = Fixed({"file": str(tmp_path / "rows.h5")}, "train")
    with open_split(data, "train") as split:
        assert len(dataset) == len(split)
        for index in (0, len(split) - 1):
            tokens, length, label = dataset[index]
            expected = split.gather(np.array([index]))[0][:12]
            assert (len(tokens), length, label) == (12, len(expected), float(split.labels[index]))
            np.testing.assert_array_equal(tokens[12 - length :].numpy(), expected)


def test_rates_ignore_the_first_steps() -> None:
    steps = Steps([[(10.0, 64, 1000), (11.0, 64, 500), (12.0, 64, 700)]])
    assert steps.rates() == {"samples_per_s": 64.0, "tokens_per_s": 600.0}


@pytest.mark.parametrize(
    "run", [run_tenor, *(pytest.param(run, marks=pytest.mark.soak) for run in (run_plain, run_alone))]
)
def test_every_kind_of_run_gives_rates_and_accuracies(data: Path, run: Run) -> None:
    rates, accuracies = run(data, TINY, 2)
    assert rates["tokens_per_s"] > rates["samples_per_s"] > 0
    assert len(accuracies) == 1 and 0.0 < accuracies[0][1] <= 1.0


def test_a_run_folder_gives_its_steps(data: Path, tmp_path: Path) -> None:
    tenor.train(data, tmp_path / "run", replace(TINY, epochs=2, workers="1"))
    steps, accuracies = read_run(tmp_path / "run")
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert steps.count == sum(event["event"] == "step" for event in logged)
    ends = [step[0] for epoch in steps.epochs for step in epoch]
    assert ends == sorted(ends) and accuracies[0][0] >= steps.epochs[0][-1][0]


def test_a_peer_that_fails_is_named() -> None:
    with pytest.raises(WorkerError, match=r"peers\.nothing failed \(exit code 1\): .*No module named"):
        run_together("tenor.bench.peers.nothing", [{}, {}])


def test_ratios_and_the_share_of_the_matrix_multiply_rate() -> None:
    rows = [
        {"name": "matmul-2", "workers": 2, "gflops": 100.0, "spread": {}},
        {"name": "tenor-1", "workers": 2, "batch_size": 64, "tokens_per_s": 100.0, "spread": {}},
        {"name": "tenor-2", "workers": 2, "batch_size": 64, "tokens_per_s": 190.0, "spread": {}},
        {"name": "two-alone", "workers": 2, "batch_size": 64, "tokens_per_s": 200.0, "spread": {}},
        {"name": "ddp-2", "workers": 2, "batch_size": 256, "tokens_per_s": 1.0, "spread": {}},
    ]
    add_ratios(rows, {row["name"]: TINY for row in rows})
    assert (rows[2]["speed_up"], rows[2]["over_alone"]) == (1.9, 0.95)
    assert "over_ddp" not in rows[2]  # measured with another batch size
    assert rows[2]["matmul_share"] == pytest.approx(190.0 * 6 * 32 * 16 / 100e9)
    assert flops_per_token(scenario.MAIN) == 6 * 512 * 228


def test_rows_are_chosen_by_name() -> None:
    names = [row.name for row in scenario._rows(BenchSettings(workers="1,2", batch_sizes="256,64"))]
    assert names.count("tenor-2") == 2
    assert {"course-small", "tenor-small", "course-large", "tenor-large", "two-alone"} <= set(names)
    assert BenchSettings(rows="tenor-2, ddp-2").chosen(names) == ["tenor-2", "ddp-2"]
    with pytest.raises(UsageError, match="nonsense"):
        BenchSettings(rows="tenor-1,nonsense").chosen(names)
