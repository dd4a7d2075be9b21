"""Every strategy trains with one worker, and gives what plain training gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.strategies import train_rank

from tenor.training.traits import STRATEGIES

TOGETHER = [name for name in STRATEGIES if name != "single"]


def train_alone(out: Path, strategy: str) -> dict[str, Any]:
    """Train with one worker for a little more than one epoch."""
    return train_rank(str(out), strategy=strategy, max_steps=150)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result = train_alone(tmp_path_factory.mktemp("single") / "run", "single")
    assert result["test"]["accuracy"] > 0.9
    return result


@pytest.mark.parametrize("strategy", TOGETHER)
def test_one_worker_is_enough(strategy: str, alone: dict[str, Any], tmp_path: Path) -> None:
    result = train_alone(tmp_path / "run", strategy)
    assert result["workers"] == 1 and result["steps"] == 150
    assert result["bytes_sent"] == 0
    if strategy == "diloco":  # its outer momentum also acts with one worker
        assert result["test"]["accuracy"] > alone["test"]["accuracy"] - 0.03
    else:
        assert result["weights_sha256"] == alone["weights_sha256"]
