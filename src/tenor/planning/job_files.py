"""A plan as a job file that `tenor train` runs under: SLURM, Kubernetes, SkyPilot or torchrun."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tenor.errors import UsageError
from tenor.planning.rows import PlanRow
from tenor.planning.settings import LOCAL_STRATEGIES, TREE, PlanSettings
from tenor.settings import option_name
from tenor.store.atomic import check_target, write_bytes
from tenor.training.recipe import complete
from tenor.training.refusals import ignored
from tenor.training.settings import TrainSettings

FILES = {
    "slurm": "tenor-plan.sbatch",
    "k8s": "tenor-plan.k8s.yaml",
    "skypilot": "tenor-plan.sky.yaml",
    "torchrun": "tenor-plan.sh",
}
# Settings that the plan decides, or that belong to the measured run alone.
_NOT_KEPT = {
    "workers",
    "threads",
    "strategy",
    "sync_every",
    "batch_size",
    "epochs",
    "balance",
    "slowdown",
    "shares",
    "token_caps",
    "backend",
    "device",
    "max_steps",
    "max_seconds",
    "profile",
    "resume",
    "stage",
    "test",
    "timeout",
}
_SAME_EVERYWHERE = ("torchrun", "skypilot")  # job files with one number of workers for all machines
_ALONE = ("async", "hogwild")  # strategies whose workers `tenor train` has to start itself
_MARK = "# Written by `tenor plan`. Set DATA to the prepared data and RUN to the run folder, on storage that all see."


@dataclass(frozen=True)
class Job:
    """What a job file needs to know."""

    row: PlanRow
    train: str  # options of `tenor train`
    threads: int
    per_host: int

    @property
    def is_alone(self) -> bool:
        """Whether one process starts the workers, because all are on one machine."""
        return self.row.strategy in _ALONE


def write_job(row: PlanRow, settings: PlanSettings, trained: Mapping[str, Any] | None, threads: int) -> Path:
    """Write the job file of a row and return its path.

    Args:
        row: The chosen row.
        settings: Which kind of file, and where.
        trained: The settings of the run that the plan is made from.
        threads: Of each worker.

    Raises:
        UsageError: The strategy or the number of workers cannot run under such a job, or the file exists.
    """
    per_host, left_over = divmod(row.workers, row.machines)
    job = Job(row, train_options(row, settings, trained or {}), threads, per_host)
    if job.is_alone and row.machines > 1:
        what = f"--write {settings.write} cannot start --strategy {row.strategy} on {row.machines} machines"
        remedy = "plan for fewer workers, or start it with mpirun (see the page about clusters)"
        raise UsageError(what, remedy=remedy)
    if left_over and settings.write in _SAME_EVERYWHERE and not job.is_alone:
        what = f"--write {settings.write} starts the same number of workers on every machine, but the chosen plan has "
        what += f"{row.workers} workers on {row.machines} machines"
        fitting = f"{per_host * row.machines} or {(per_host + 1) * row.machines}"
        raise UsageError(what, remedy=f"give --workers {fitting}, or choose --write slurm or k8s")
    if settings.sums == TREE and settings.write != "slurm":
        what = f"--write {settings.write} starts workers that add up over gloo's ring, not over a tree"
        raise UsageError(what, remedy="omit --sums, or choose --write slurm, which can start them with MPI")
    path = Path(settings.job or FILES[settings.write])
    if path.exists():
        raise UsageError("exists already", where=path, remedy="remove it, or name another file with --job")
    check_target(path)
    write_bytes(path, _TEMPLATES[settings.write](job).encode())
    return path


def train_options(row: PlanRow, settings: PlanSettings, trained: Mapping[str, Any]) -> str:
    """The options of `tenor train` that differ from their defaults: those of the measured run, and the plan's."""
    words: list[str] = []
    shaping = {name: trained[name] for name in ("task", "model", "cell", "embeddings", "from_run") if name in trained}
    left_out = _NOT_KEPT | ignored(complete(TrainSettings(**shaping), None))
    for field in fields(TrainSettings):
        value = trained.get(field.name, field.default)
        if field.name not in left_out and value != field.default and value is not None:
            words += _option(field.name, value)
    words += _option("batch_size", row.batch_size)
    words += _option("epochs", max(1, math.ceil(round(row.epochs or 1, 6))))
    if row.workers > 1:
        words += _option("strategy", row.strategy)
    if row.strategy in LOCAL_STRATEGIES:
        words += _option("sync_every", settings.sync_every)
    if settings.sums == TREE and row.workers > 1:
        words += _option("backend", "mpi")
    if settings.balance:
        words += _option("balance", "steps:20")
    return shlex.join(words)


def _option(name: str, value: Any) -> list[str]:
    flag = option_name(name)
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    return [flag, str(value)]


def _slurm(job: Job) -> str:
    row = job.row
    if job.is_alone:
        tasks, start = f"--nodes=1 --ntasks=1 --cpus-per-task={row.workers * job.threads}", "tenor train"
        workers = f" --workers {row.workers}"
    else:
        tasks = f"--nodes={row.machines} --ntasks={row.workers} --cpus-per-task={job.threads}"
        # srun does not take over --cpus-per-task from the lines above since SLURM 22.05
        start, workers = f"srun --kill-on-bad-exit --cpus-per-task={job.threads} tenor train", ""
    return f"""#!/bin/bash
{_MARK}
#SBATCH --job-name=tenor {tasks}
{start} "${{DATA:?}}" --out "${{RUN:?}}" --threads {job.threads}{workers} {job.train}
"""


def _torchrun(job: Job) -> str:
    row = job.row
    if job.is_alone:
        start = f'tenor train "${{DATA:?}}" --out "${{RUN:?}}" --workers {row.workers}'
    elif row.machines == 1:
        start = f'torchrun --standalone --nproc-per-node {row.workers} -m tenor train "${{DATA:?}}" --out "${{RUN:?}}"'
    else:
        start = (
            f'torchrun --nnodes {row.machines} --nproc-per-node {job.per_host} --node-rank "${{NODE_RANK:?}}" '
            '--master-addr "${MASTER_ADDR:?}" --master-port "${MASTER_PORT:-29400}" \\\n'
            '  -m tenor train "${DATA:?}" --out "${RUN:?}"'
        )
    several = "# Run it on every machine, with its own NODE_RANK from 0 and the MASTER_ADDR of the first.\n"
    return f"#!/bin/sh\n{_MARK}\n{several * (row.machines > 1)}set -e\n{start} --threads {job.threads} {job.train}\n"


def _k8s(job: Job) -> str:
    row = job.row
    pods = 1 if job.is_alone else row.workers
    cores = job.threads * (row.workers if job.is_alone else 1)
    workers = f" --workers {row.workers}" if job.is_alone or row.workers == 1 else ""
    return f"""{_MARK}
# One pod per worker. Before you apply this file, replace
# - `image: tenor-train:latest` by the name of an image that your nodes can pull and that has the whole of Tenor; build
#   it in the source tree as the first lines of deploy/Dockerfile say, and push it to your registry;
# - `claimName: tenor` by a claim that all pods can write to, with the prepared data in its folder `data`.
apiVersion: v1
kind: Service
metadata: {{name: tenor}}
spec: {{clusterIP: None, selector: {{job-name: tenor}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: tenor}}
spec:
  completions: {pods}
  parallelism: {pods}
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: tenor
      restartPolicy: Never
      containers:
        - name: tenor
          image: tenor-train:latest
          resources: {{requests: {{cpu: "{cores}"}}}}
          env:
            - {{name: WORLD_SIZE, value: "{pods}"}}
            - {{name: MASTER_ADDR, value: tenor-0.tenor}}
            - {{name: DATA, value: /shared/data}}
            - {{name: RUN, value: /shared/run}}
          command: [sh, -c]
          args:
            - >-
              tenor train "$DATA" --out "$RUN" --threads {job.threads}{workers} {job.train}
          volumeMounts: [{{name: shared, mountPath: /shared}}]
      volumes: [{{name: shared, persistentVolumeClaim: {{claimName: tenor}}}}]
"""


def _skypilot(job: Job) -> str:
    row = job.row
    if job.is_alone:
        start = f'tenor train "$DATA" --out "$RUN" --workers {row.workers}'
    else:
        start = (
            f"torchrun --nnodes $SKYPILOT_NUM_NODES --node-rank $SKYPILOT_NODE_RANK --nproc-per-node {job.per_host}\n"
            '  --master-addr $(echo "$SKYPILOT_NODE_IPS" | head -n 1) --master-port 29400\n'
            '  -m tenor train "$DATA" --out "$RUN"'
        ).replace("\n", " \\\n  ")
    return f"""{_MARK}
# Start it in the folder of Tenor's source tree, which SkyPilot copies to the machines and installs there.
name: tenor
workdir: .
num_nodes: {row.machines}
resources: {{instance_type: {row.machine}}}
envs: {{DATA: /shared/data, RUN: /shared/run}}
setup: pip install -c constraints.txt .
run: |
  {start} --threads {job.threads} {job.train}
"""


_TEMPLATES: dict[str, Callable[[Job], str]] = {
    "slurm": _slurm,
    "k8s": _k8s,
    "skypilot": _skypilot,
    "torchrun": _torchrun,
}
