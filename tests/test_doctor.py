"""The doctor tests each back end and names what is broken."""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from helpers.command import run_tenor

from tenor import doctor, environment
from tenor.cli.commands.doctor import _text

ROOT = Path(__file__).resolve().parent.parent


def test_the_extras_are_those_of_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {name: tuple(re.match(r"[\w-]+", line).group() for line in lines) for name, lines in extras.items()}  # type: ignore[union-attr]
    assert {name: found for name, found in named.items() if name not in ("dev", "docs")} == doctor.EXTRAS


@pytest.fixture(scope="module")
def diagnosis() -> dict[str, Any]:
    found: dict[str, Any] = run_tenor("doctor", "--json").ok().json
    return found


def test_the_command_really_starts_gloo(diagnosis: dict[str, Any]) -> None:
    got = diagnosis
    assert got["ok"] is True and got["broken"] == {}
    assert got["backends"]["gloo"] == {"works": True, "detail": "all-reduce over one process on loopback succeeded"}
    assert set(got["backends"]) == {"gloo", "nccl", "mpi", "cuda"}
    assert got["threads"]["compute"] >= 1 and got["machine"]["cores"] >= 1
    assert all(got["versions"][name] for name in environment.CORE)
    assert "loopback only" in got["notes"][0] and "MASTER_ADDR" in got["notes"][0]
    for rest in ("torchrun's agent store", "mpirun's daemons", "NCCL"):
        assert rest in got["notes"][1]


def test_the_text_has_one_line_per_extra(diagnosis: dict[str, Any]) -> None:
    words = _text(doctor.Diagnosis(**diagnosis))
    for name in doctor.EXTRAS:
        line = next(line for line in words.splitlines() if line.startswith(f"{name} "))
        assert "present" in line or f"pip install 'tenor[{name}]'" in line
    assert "torch threads" in words and "torchrun and mpirun open listeners on all interfaces" in words


def test_the_parts_of_a_service_are_tried() -> None:
    got = run_tenor("doctor", "--serve", "--json").ok().json
    assert got["ok"] is True
    names = {"health", "readiness", "page", "prediction", "without a token", "large body", "metrics", "drain"}
    assert names <= set(got["serve"])
    assert got["serve"]["without a token"] == {"works": True, "detail": "POST /predict answers 401"}


def test_a_broken_core_is_named_and_fails(tmp_path: Path) -> None:
    (tmp_path / "safetensors.py").write_text("raise OSError('damaged library')")
    finished = run_tenor("doctor", env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"})
    assert finished.code == 1
    assert "broken: OSError: damaged library" in finished.stdout
    assert "broken core packages: safetensors" in finished.stderr


def test_the_runtime_needs_no_package_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tomllib.loads((ROOT / "packaging" / "runtime" / "pyproject.toml").read_text("utf-8"))["project"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: lines["dependencies"])
    for own, other, left_out in (("tenor", "tenor-runtime", 0), ("tenor-runtime", "tenor", 4)):
        monkeypatch.setattr(environment, "version", {own: "0.1", other: None}.get)
        assert len(doctor.needed_core()) == len(environment.CORE) - left_out


def test_a_missing_extra_shows_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.EXTRAS, "dask", ("numpy", "no-such-distribution"))
    extra = doctor._extra("dask")
    assert extra == {"present": False, "missing": ["no-such-distribution"], "install": "pip install 'tenor[dask]'"}


def test_the_doctor_survives_a_back_end_that_dies_or_hangs() -> None:
    died = doctor._try("no-such-back-end", 60)
    assert died["works"] is False and "no-such-back-end" in died["detail"].lower()
    assert doctor._try("gloo", 0.01) == {"works": False, "detail": "did not finish within 0.01 s"}


LISTENING = """
import psutil
from mpi4py import MPI
print([c.laddr.ip for c in psutil.Process().net_connections("inet") if c.status == "LISTEN"])
"""


@pytest.mark.skipif(environment.version("mpi4py") is None, reason="the extra mpi is not installed")
def test_probing_mpi_opens_no_listener() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", LISTENING]
        ran = subprocess.run(
            command, env=doctor._probe_environment(folder), capture_output=True, text=True, timeout=60, check=True
        )
    assert ran.stdout.strip() == "[]"
