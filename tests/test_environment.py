"""The environment describes versions and the machine, and nothing private."""

import getpass
import json
import os
import platform
import re
import tomllib
from importlib import metadata
from pathlib import Path

import psutil
import pytest

from tenor import cgroup, environment
from tenor.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent


def test_the_core_is_what_the_project_depends_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert list(environment.CORE) == [re.match(r"[\w-]+", line).group() for line in project["dependencies"]]  # type: ignore[union-attr]


def test_the_values_agree_with_other_sources() -> None:
    got = environment.describe()
    assert got["versions"]["numpy"] == metadata.version("numpy")
    assert got["versions"]["python"] == platform.python_version()
    assert got["machine"]["memory_gib"] == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", got["date"])


def test_the_cpu_quota_of_a_container_limits_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: 0.2)
    assert environment.usable_cores() == 1
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: float("inf"))
    assert environment.usable_cores() == len(psutil.Process().cpu_affinity())


def test_more_workers_than_the_machine_can_start_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: 1)
    assert [environment.num_workers(asked) for asked in ("auto", 1, "32")] == [1, 1, 32]
    with pytest.raises(UsageError, match="100000 is too many for this machine, which has 1 core; use at most 32"):
        environment.num_workers(100_000)
    with pytest.raises(UsageError, match="threads 33 is too many"):
        environment.num_threads(33, 1)


def test_nothing_private_is_included() -> None:
    text = json.dumps(environment.describe())
    assert str(Path.home()) not in text.replace('"/"', "")
    assert platform.node() not in text and os.sep + getpass.getuser() not in text


def test_a_missing_distribution_is_none() -> None:
    assert environment.version("no-such-distribution-anywhere") is None
