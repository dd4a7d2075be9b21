"""The environment names versions and the machine, and nothing private."""

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

from tenor import environment

ROOT = Path(__file__).resolve().parent.parent


def test_the_core_is_what_the_project_depends_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert list(environment.CORE) == [re.match(r"[\w-]+", line).group() for line in project["dependencies"]]  # type: ignore[union-attr]


def test_figures_agree_with_another_source() -> None:
    got = environment.describe()
    assert got["versions"]["numpy"] == metadata.version("numpy")
    assert got["versions"]["python"] == platform.python_version()
    assert got["machine"]["memory_gib"] == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", got["date"])


def test_a_container_s_share_of_time_counts_as_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "fs" / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "own").write_text("0::/outer/inner\n")
    assert environment._quota(tmp_path / "fs", tmp_path / "own") == float("inf")  # no files at all
    (inner / "cpu.max").write_text("max 100000\n")
    (inner.parent / "cpu.max").write_text("150000 100000\n")
    assert environment._quota(tmp_path / "fs", tmp_path / "own") == 1.5
    assert environment._quota(tmp_path / "fs", tmp_path / "none") == float("inf")
    monkeypatch.setattr(environment, "_quota", lambda: 0.2)
    assert environment.usable_cores() == 1
    monkeypatch.setattr(environment, "_quota", lambda: float("inf"))
    assert environment.usable_cores() == len(psutil.Process().cpu_affinity())


def test_nothing_private_is_named() -> None:
    text = json.dumps(environment.describe())
    assert str(Path.home()) not in text.replace('"/"', "")
    assert platform.node() not in text and os.sep + getpass.getuser() not in text


def test_a_missing_distribution_is_none() -> None:
    assert environment.version("no-such-distribution-anywhere") is None
