"""The world is read from the variables of each launcher, and contradictions are refused."""

from __future__ import annotations

import pytest

from tenor.errors import UsageError
from tenor.world import World, detect, tasks_per_node

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


def test_a_process_without_a_launcher_is_on_its_own() -> None:
    assert detect({}) == World()


@pytest.mark.parametrize(
    ("variables", "launcher", "rank", "size", "local"),
    [(TORCHRUN, "torchrun", 5, 8, 1), (MPIRUN, "mpirun", 2, 5, 2), (SLURM, "slurm", 3, 4, 1)],
)
def test_each_launcher_is_read(variables: dict[str, str], launcher: str, rank: int, size: int, local: int) -> None:
    world = detect(variables)
    assert (world.launcher, world.rank, world.size, world.local_rank) == (launcher, rank, size, local)


def test_torchrun_sets_the_rendezvous() -> None:
    assert detect(TORCHRUN).rendezvous == "tcp://n0:4"


def test_torchrun_inside_slurm_is_read() -> None:
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


# What `srun -n 5` over three nodes sets for each task, without --ntasks-per-node.
STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_NTASKS": "5",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_NNODES": "3",
    "SLURM_STEP_NUM_NODES": "3",
    "SLURM_TASKS_PER_NODE": "2(x2),1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_STEP_NODELIST": "gpu[07-09]",
}
PLACES = [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1), (4, 2, 0)]  # (rank, node, local rank)


def task(rank: int, node: int, local: int, **changes: str) -> World:
    place = {"SLURM_PROCID": str(rank), "SLURM_NODEID": str(node), "SLURM_LOCALID": str(local)}
    return detect({**STEP, **place, **changes})


def test_every_slurm_task_knows_its_local_size_and_all_agree_on_the_fullest_host() -> None:
    worlds = [task(*place) for place in PLACES]
    assert [world.local_size for world in worlds] == [2, 2, 2, 2, 1]
    assert {world.fullest_host for world in worlds} == {2}
    assert {world.rendezvous for world in worlds} == {"tcp://gpu07:24711"}
    assert not any(world.is_one_host for world in worlds)


def test_a_step_smaller_than_its_job_counts_its_own_tasks() -> None:
    """`srun -n 2` inside an allocation of eight: older versions of SLURM keep the numbers of the job."""
    step = {"SLURM_NTASKS": "8", "SLURM_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_NUM_TASKS": "2"}
    worlds = [task(rank, 0, rank, **step, SLURM_STEP_TASKS_PER_NODE="2") for rank in range(2)]
    assert [(world.rank, world.size, world.local_size, world.is_one_host) for world in worlds] == [
        (0, 2, 2, True),
        (1, 2, 2, True),
    ]


def test_without_a_list_all_tasks_still_agree() -> None:
    bare = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4"}
    ranks = [detect({**bare, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}) for rank in range(4)]
    assert [world.local_size for world in ranks] == [4, 4, 4, 4]
    spread = {**bare, "SLURM_NNODES": "2"}
    ranks = [detect({**spread, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank % 2)}) for rank in range(4)]
    assert [world.local_size for world in ranks] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("text", "sizes"), [("2(x3),1", [2, 2, 2, 1]), ("4", [4]), ("1,3", [1, 3]), ("", []), ("1(x999999999999)", [])]
)
def test_tasks_per_node(text: str, sizes: list[int]) -> None:
    assert tasks_per_node(text, 16) == sizes


@pytest.mark.parametrize("text", ["2(3)", "x", "2(x3", "-1", "2;1"])
def test_a_list_that_slurm_does_not_write_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="tasks per node"):
        tasks_per_node(text, 16)


# What Kubeflow Trainer sets in a pod of a TrainJob with four nodes.
KUBEFLOW = {
    "PET_NNODES": "4",
    "PET_NPROC_PER_NODE": "auto",
    "PET_NODE_RANK": "2",
    "PET_MASTER_ADDR": "job-node-0-0.job",
    "PET_MASTER_PORT": "29400",
    "JOB_COMPLETION_INDEX": "2",
}
SKYPILOT = {
    "SKYPILOT_NODE_RANK": "1",
    "SKYPILOT_NODE_IPS": "10.0.0.5\n10.0.0.6\n10.0.0.7",
    "SKYPILOT_NUM_NODES": "3",
    "SKYPILOT_NUM_GPUS_PER_NODE": "0",
    "SKYPILOT_TASK_ID": "sky-2026-01-01-00-00-00-000000_task_1",
}
KUBERNETES = {"JOB_COMPLETION_INDEX": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "job-0.job", "MASTER_PORT": "4000"}


@pytest.mark.parametrize(
    ("variables", "launcher", "rank", "size", "rendezvous"),
    [
        (KUBEFLOW, "kubeflow", 2, 4, "tcp://job-node-0-0.job:29400"),
        ({k: v for k, v in KUBEFLOW.items() if k != "PET_NODE_RANK"}, "kubeflow", 2, 4, "tcp://job-node-0-0.job:29400"),
        ({**KUBEFLOW, "PET_NNODES": "4:4"}, "kubeflow", 2, 4, "tcp://job-node-0-0.job:29400"),
        (SKYPILOT, "skypilot", 1, 3, "tcp://10.0.0.5:29500"),
        ({**SKYPILOT, "MASTER_PORT": "8008"}, "skypilot", 1, 3, "tcp://10.0.0.5:8008"),
        ({**SKYPILOT, "SKYPILOT_NODE_IPS": "fd00::5\nfd00::6\nfd00::7"}, "skypilot", 1, 3, "tcp://[fd00::5]:29500"),
        (KUBERNETES, "kubernetes", 3, 4, "tcp://job-0.job:4000"),
    ],
)
def test_schedulers_start_one_worker_per_node(
    variables: dict[str, str], launcher: str, rank: int, size: int, rendezvous: str
) -> None:
    world = detect(variables)
    assert (world.launcher, world.rank, world.size, world.rendezvous) == (launcher, rank, size, rendezvous)
    assert (world.local_rank, world.local_size, world.fullest_host) == (0, 1, 1)


@pytest.mark.parametrize("variables", [KUBEFLOW, SKYPILOT, KUBERNETES, STEP | {"SLURM_PROCID": "1"}])
def test_torchrun_and_our_own_workers_win_inside_a_scheduler(variables: dict[str, str]) -> None:
    assert detect({**variables, **TORCHRUN}) == detect(TORCHRUN)
    own = {"TENOR_RANK": "1", "TENOR_WORLD_SIZE": "2", "TENOR_RENDEZVOUS": "file:///x"}
    assert (detect({**variables, **own}).launcher, detect({**variables, **own}).rank) == ("tenor", 1)


@pytest.mark.parametrize(
    "variables",
    [
        {**KUBEFLOW, "PET_NNODES": "1", "PET_NODE_RANK": "0"},
        {**SKYPILOT, "SKYPILOT_NUM_NODES": "1", "SKYPILOT_NODE_RANK": "0"},
        {"JOB_COMPLETION_INDEX": "3"},  # nothing says how many pods there are
        {"PET_NNODES": "2"},  # no rank: torchrun would choose it
    ],
)
def test_a_single_node_may_start_workers_of_its_own(variables: dict[str, str]) -> None:
    assert detect(variables) == World()


@pytest.mark.parametrize(
    "variables",
    [
        {**KUBEFLOW, "PET_NNODES": "2:4"},
        {**KUBEFLOW, "PET_NNODES": "all"},
        {**SKYPILOT, "SKYPILOT_NODE_RANK": "3"},
        {**SKYPILOT, "SKYPILOT_NUM_NODES": "0"},
        {**STEP, "SLURM_PROCID": "five"},
        {**STEP, "SLURM_PROCID": "0", "SLURM_JOB_ID": "x"},
    ],
)
def test_nonsense_from_a_scheduler_is_refused(variables: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        detect(variables)
