"""The same command under torchrun, mpirun and SLURM: the same weights as with local workers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.hosts import needs_hosts, two_hosts
from helpers.mpi import MPI_VARIABLES, MPIRUN, needs_mpi
from helpers.processes import child_environment

SIZES = ["--hidden", "8", "--embedding-dim", "8"]
OPTIONS = [*SIZES, "--max-steps", "12", "--threads", "1", "--json"]


def start(command: list[str], **variables: str) -> subprocess.Popen[str]:
    environment = child_environment(**variables)
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(*processes: subprocess.Popen[str], timeout: float = 90) -> list[str]:
    """Return the standard outputs. A process that hangs is killed with all its children."""
    try:
        said = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.communicate()
    for process, (_, errors) in zip(processes, said, strict=True):
        assert process.returncode == 0, errors
    return [output for output, _ in said]


def tenor_train(data: Path, out: Path, *options: str) -> list[str]:
    vectors = [] if "--embeddings" in options else ["--vector-epochs", "1"]
    return [sys.executable, "-m", "tenor", "train", str(data), "--out", str(out), *OPTIONS, *vectors, *options]


@pytest.fixture(scope="module")
def local(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    (said,) = finish(start(tenor_train(data, tmp_path_factory.mktemp("local") / "run", "--workers", "2")))
    return str(json.loads(said)["weights_sha256"])


@needs_mpi
def test_mpirun(data: Path, tmp_path: Path, local: str) -> None:
    command = [str(MPIRUN), "-n", "2", *tenor_train(data, tmp_path / "run", "--backend", "mpi")]
    (said,) = finish(start(command, **MPI_VARIABLES))
    assert json.loads(said)["weights_sha256"] == local  # one JSON object: rank 0 speaks for all


def test_torchrun(data: Path, tmp_path: Path, local: str) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", *tenor_train(data, tmp_path / "run")[2:]]
    (said,) = finish(start(command, TMPDIR=str(tmp_path)))
    assert json.loads(said)["weights_sha256"] == local


def test_slurm(data: Path, tmp_path: Path, local: str) -> None:
    """Set the variables of srun; SLURM itself is not needed."""
    shared = {"SLURM_NTASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": "4711"}
    tasks = [
        start(tenor_train(data, tmp_path / "run"), **shared, SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank))
        for rank in range(2)
    ]
    said, silence = finish(*tasks)
    assert json.loads(said)["weights_sha256"] == local
    assert silence == ""


def test_workers_and_launcher_must_agree(data: Path, tmp_path: Path) -> None:
    process = start(
        tenor_train(data, tmp_path / "run", "--workers", "3"), RANK="0", WORLD_SIZE="2", MASTER_ADDR="localhost"
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "torchrun started 2" in errors


@pytest.mark.soak
@needs_hosts
def test_two_hosts(data: Path, tmp_path: Path, local: str) -> None:
    """torchrun on two hosts that share nothing but a cable and a folder."""
    with two_hosts() as hosts:
        nodes = []
        for rank, host in enumerate(hosts):
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(rank)]
            torchrun += ["--nproc-per-node", "1", "--master-addr", hosts[0].address, "--master-port", "29400"]
            command = [*torchrun, "--local-addr", host.address, "-m", *tenor_train(data, tmp_path / "run")[2:]]
            nodes.append(start(host.command(*command), TMPDIR=str(tmp_path)))
        said, silence = finish(*nodes)
    assert json.loads(said)["weights_sha256"] == local
    assert silence == ""
