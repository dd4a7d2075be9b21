"""Job files: their commands are valid, start as many workers as planned, and their variables give the right ranks."""

import dataclasses
import shlex
import typing
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.planned import measurement

from tenor import world
from tenor.errors import UsageError
from tenor.planning.job_files import FILES, train_options, write_job
from tenor.planning.plan import make_plan
from tenor.planning.rows import PlanRow
from tenor.planning.settings import JOB_FILES, PlanSettings
from tenor.settings import build
from tenor.training.recipe import DataFacts, complete
from tenor.training.refusals import refuse_without_effect
from tenor.training.settings import TrainSettings


def planned(workers: int, **options: Any) -> PlanRow:
    return make_plan(measurement(), PlanSettings(workers=str(workers), **options)).rows[0]


def written(tmp_path: Path, kind: str, workers: int, **options: Any) -> str:
    row, settings = planned(workers, **options), PlanSettings(write=kind, job=str(tmp_path / "job"), **options)
    return write_job(row, settings, measurement().settings, 1).read_text("utf-8")


def parse_options(words: list[str]) -> TrainSettings:
    """Read `--name value` words as `tenor train` does, by the fields of its settings."""
    kinds = typing.get_type_hints(TrainSettings)
    values: dict[str, Any] = {}
    place = 0
    while place < len(words):
        name = words[place].removeprefix("--").replace("-", "_")
        if kinds.get(name.removeprefix("no_")) is bool:
            values[name.removeprefix("no_")] = not name.startswith("no_")
            place += 1
            continue
        kind, text = kinds[name], words[place + 1]
        values[name] = kind(text) if kind in (int, float) else text
        place += 2
    return build(TrainSettings, values)


def train_words(text: str) -> list[str]:
    """The words after `tenor train DATA --out RUN` in a job file."""
    joined = text.replace("\\\n", " ")
    line = next(line for line in joined.splitlines() if "tenor train" in line and not line.startswith("#"))
    words = shlex.split(line)
    return words[words.index("--out") + 2 :]


@pytest.mark.parametrize("kind", JOB_FILES)
def test_every_kind_trains_the_planned_model(tmp_path: Path, kind: str) -> None:
    settings = parse_options(train_words(written(tmp_path, kind, 4, epochs=3)))
    assert (settings.hidden, settings.batch_size, settings.epochs, settings.strategy) == (64, 64, 3, "allreduce")
    assert settings.threads == 1


def test_options_of_the_plan_and_of_the_run() -> None:
    row = dataclasses.replace(planned(2, strategy="local-sgd"), epochs=2.3)
    trained = {**(measurement().settings or {}), "bidirectional": True, "max_steps": 7, "workers": "3"}
    trained |= {"test": False, "profile": True}
    options = train_options(row, PlanSettings(sync_every=5, balance=True), trained)
    found = parse_options(shlex.split(options))
    assert (found.epochs, found.sync_every, found.bidirectional, found.balance) == (3, 5, True, "steps:20")
    assert found.max_steps == 0 and found.workers == "auto" and found.test and not found.profile


@pytest.mark.parametrize(
    "changes", [{"model": "wide"}, {"model": "deep", "cell": "lstm"}, {"embeddings": "none"}, {"preset": "fast"}]
)
def test_options_that_the_model_ignores_are_left_out(changes: dict[str, Any]) -> None:
    trained = complete(TrainSettings(**changes), DataFacts(500, 40_000))
    words = shlex.split(train_options(planned(2), PlanSettings(), vars(trained)))
    names = {word[2:].removeprefix("no-").replace("-", "_") for word in words if word.startswith("--")}
    asked = parse_options(words)
    refuse_without_effect(asked, complete(asked, DataFacts(500, 40_000)), names)
    assert asked.model == trained.model


def test_options_of_reviews_are_left_out_for_other_tasks() -> None:
    trained = complete(TrainSettings(task="points", hidden=9), None)
    words = shlex.split(train_options(planned(2), PlanSettings(), vars(trained)))
    assert "--hidden" in words and not {"--preset", "--model", "--ngrams", "--cell"} & {*words}


def test_slurm_starts_one_task_per_worker(tmp_path: Path) -> None:
    text = written(tmp_path, "slurm", 6)
    assert "--nodes=3 --ntasks=6 --cpus-per-task=1" in text
    assert "srun --kill-on-bad-exit --cpus-per-task=1 tenor train" in text
    assert text.startswith("#!/bin/bash")


def test_torchrun_on_one_machine_and_on_several(tmp_path: Path) -> None:
    one = written(tmp_path, "torchrun", 2)
    assert "torchrun --standalone --nproc-per-node 2 -m tenor train" in one and "NODE_RANK" not in one
    (tmp_path / "job").unlink()
    several = written(tmp_path, "torchrun", 6)
    assert "--nnodes 3 --nproc-per-node 2" in several and "MASTER_ADDR" in several


def test_the_pods_of_kubernetes_find_their_ranks(tmp_path: Path) -> None:
    text = written(tmp_path, "k8s", 3)
    service, job = yaml.safe_load_all(text)
    assert service["kind"] == "Service" and service["spec"]["clusterIP"] == "None"
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    container = spec["template"]["spec"]["containers"][0]
    environ = {one["name"]: one["value"] for one in container["env"]}
    claim = spec["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    comments = [line for line in text.splitlines() if line.startswith("#")]
    for named in (f"`image: {container['image']}`", f"`claimName: {claim}`"):  # what the reader has to replace
        assert any(named in line for line in comments)
    found = [world.detect({**environ, "JOB_COMPLETION_INDEX": str(index)}) for index in range(3)]
    assert [(one.rank, one.size) for one in found] == [(0, 3), (1, 3), (2, 3)]
    assert found[2].rendezvous == "tcp://tenor-0.tenor:29500"  # the first pod of the service's subdomain
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]


def test_skypilot_asks_for_the_planned_machines(tmp_path: Path) -> None:
    task = yaml.safe_load(written(tmp_path, "skypilot", 6, machine="c5.xlarge"))
    assert task["num_nodes"] == 2 and task["resources"] == {"instance_type": "c5.xlarge"}
    assert (task["workdir"], task["setup"]) == (".", "pip install -c constraints.txt .")  # the source tree travels
    assert "--nproc-per-node 3" in task["run"] and set(task["envs"]) == {"DATA", "RUN"}


@pytest.mark.parametrize("kind", JOB_FILES)
def test_strategies_that_share_memory_stay_on_one_machine(tmp_path: Path, kind: str) -> None:
    text = written(tmp_path, kind, 2, strategy="hogwild")
    assert "--workers 2" in text and "torchrun" not in text.replace(FILES["torchrun"], "")
    assert "srun" not in text
    with pytest.raises(UsageError, match="cannot start strategy async on"):
        written(tmp_path, kind, 8, strategy="async")


@pytest.mark.parametrize("kind", ["torchrun", "skypilot"])
def test_workers_that_do_not_divide_evenly_among_the_machines_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UsageError, match=rf"write {kind}.*5 workers on 3 machines.*workers 3 or 6"):
        written(tmp_path, kind, 5)
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(("kind", "words"), [("slurm", "--nodes=3 --ntasks=5"), ("k8s", "completions: 5")])
def test_launchers_that_place_single_workers_start_any_number(tmp_path: Path, kind: str, words: str) -> None:
    assert words in written(tmp_path, kind, 5)


def test_a_tree_needs_mpi_which_only_slurm_starts(tmp_path: Path) -> None:
    words = train_words(written(tmp_path, "slurm", 4, sums="tree"))
    assert words[words.index("--backend") + 1] == "mpi"
    assert "--backend" not in train_options(planned(1, sums="tree"), PlanSettings(sums="tree"), {})
    for kind in set(JOB_FILES) - {"slurm"}:
        with pytest.raises(UsageError, match="gloo's ring"):
            written(tmp_path / kind, kind, 4, sums="tree")


def test_an_existing_file_stays(tmp_path: Path) -> None:
    (tmp_path / "job").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        written(tmp_path, "slurm", 2)
    assert (tmp_path / "job").read_text() == "mine"
