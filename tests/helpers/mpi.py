"""Call a function in processes that mpirun starts, with the variables that Open MPI needs on a test machine."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import child_environment, python

MPIRUN = Path(sys.executable).with_name("mpirun")
# By default Open MPI refuses to run as root or with more processes than cores; shared memory keeps it off the network
MPI_VARIABLES = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_btl": "self,sm",
}
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIRUN.exists(), reason="the extra 'mpi' is not installed"
)


def mpirun(num_ranks: int, *command: str) -> list[str]:
    return [str(MPIRUN), "-n", str(num_ranks), *command]


def spawn_ranks(num_ranks: int, target: str, timeout: float, **arguments: Any) -> list[Any]:
    """Call `target` in every rank that mpirun starts; return the values in order of rank, like `spawn_workers`."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        call = (target, json.dumps(arguments), f"{folder}/{{rank}}.json")
        process = subprocess.Popen(
            mpirun(num_ranks, *python("-W", "error", "-m", "helpers.worker_main", *call)),
            env=child_environment(**MPI_VARIABLES),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        assert process.returncode == 0, said.decode()
        return [json.loads(Path(folder, f"{rank}.json").read_text("utf-8")) for rank in range(num_ranks)]
