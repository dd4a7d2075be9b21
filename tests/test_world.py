"""The world as each launcher describes it, and contradictions refused."""

from __future__ import annotations

import pytest

from tenor.errors import UsageError
from tenor.world import World, detect

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "n0",
    "MASTER_PORT": "4",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "5",
    "OMPI_COMM_WORLD_LOCAL_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "5",
}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}


def test_alone_without_a_launcher() -> None:
    assert detect({}) == World()


@pytest.mark.parametrize(
    ("variables", "launcher", "rank", "size", "local"),
    [(TORCHRUN, "torchrun", 5, 8, 1), (MPIRUN, "mpirun", 2, 5, 2), (SLURM, "slurm", 3, 4, 1)],
)
def test_each_launcher_is_read(variables: dict[str, str], launcher: str, rank: int, size: int, local: int) -> None:
    world = detect(variables)
    assert (world.launcher, world.rank, world.size, world.local_rank) == (launcher, rank, size, local)


def test_torchrun_says_where_to_meet() -> None:
    assert detect(TORCHRUN).rendezvous == "tcp://n0:4"


def test_slurm_may_have_started_the_other() -> None:
    assert detect({**SLURM, **TORCHRUN}).launcher == "torchrun"


def test_an_sbatch_script_is_not_a_rank() -> None:
    assert detect({k: v for k, v in SLURM.items() if k != "SLURM_STEP_ID"}) == World()


def test_two_launchers_that_disagree_are_refused() -> None:
    with pytest.raises(UsageError, match="two launchers disagree"):
        detect({**TORCHRUN, **MPIRUN})


@pytest.mark.parametrize("change", [{"RANK": "8"}, {"RANK": "-1"}, {"WORLD_SIZE": "x"}, {"LOCAL_RANK": "4"}])
def test_nonsense_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        detect({**TORCHRUN, **change})
