"""Memory taken before balanced training: as much as is likely to be needed, and nothing learned from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.processes import child_environment, python
from helpers.training import events, losses, run

from tenor.training.balancing.memory_warmup import num_rows

FAULTS = """
import resource, torch
from tenor.memory import keep_freed_memory, reserve
keep_freed_memory()
reserve({megabytes} << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for rows in (12, 7, 3):
    torch.ones(rows << 18)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(megabytes: int) -> int:
    found = subprocess.run(
        python("-c", FAULTS.format(megabytes=megabytes)), env=child_environment(), capture_output=True, check=True
    )
    return int(found.stdout)


def test_reserved_memory_costs_no_faults_later() -> None:
    assert faults(0) > 2500  # 12 MB are 3,072 pages
    assert faults(20) < 500


@pytest.mark.parametrize(
    ("batch", "workers", "longest", "cap", "expected"),
    [
        (512, 2, 64, np.inf, 512),
        (512, 8, 64, np.inf, 128),
        (5, 8, 64, np.inf, 2),
        (512, 2, 64, 6400.0, 100),
        (512, 2, 64, 60.0, 0),
    ],
)
def test_twice_an_equal_share_within_the_cap(batch: int, workers: int, longest: int, cap: float, expected: int) -> None:
    assert num_rows(batch, workers, longest, cap) == expected


@pytest.fixture(scope="module")
def unbalanced(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbalanced") / "run"
    run(data, out, max_steps=6, precision="fp64", workers=1)  # one process, which is exact to rounding
    return out


@pytest.mark.parametrize("cap", [*(pytest.param(cap, marks=pytest.mark.soak) for cap in ("", "400")), "900:40"])
def test_nothing_is_learned_from_it(data: Path, unbalanced: Path, tmp_path: Path, cap: str) -> None:
    out = tmp_path / "run"
    run(data, out, max_steps=6, precision="fp64", balance="steps:3", token_caps=cap, workers=2)
    np.testing.assert_allclose(losses(out), losses(unbalanced), rtol=1e-9, atol=0)
    assert len(events(out)) == 6
