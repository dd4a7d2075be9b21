"""The distribution tenor-runtime has the dependencies that predicting needs, and predicting needs no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.models import write_model

from tenor.cli.command import ONLY_TRAINING

ROOT = Path(__file__).resolve().parents[1]


def project(folder: Path) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_the_dependencies_are_those_of_the_whole_package() -> None:
    whole, runtime = project(ROOT), project(ROOT / "packaging" / "runtime")
    needed: list[str] = whole["dependencies"]  # type: ignore[assignment]
    assert runtime["dependencies"] == [line for line in needed if line.partition(">")[0] not in ONLY_TRAINING]
    assert len(needed) - len(runtime["dependencies"]) == len(ONLY_TRAINING)  # type: ignore[arg-type]
    extras: dict[str, list[str]] = runtime["optional-dependencies"]  # type: ignore[assignment]
    assert extras.items() <= whole["optional-dependencies"].items()  # type: ignore[attr-defined]
    for name in ("requires-python", "scripts", "license"):
        assert runtime[name] == whole[name]


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """An environment in which the packages of training cannot be imported."""
    folder = tmp_path / "blocked"
    for name in ONLY_TRAINING:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise ModuleNotFoundError('no {name}', name={name!r})\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}


def tenor(words: list[object], environment: dict[str, str], code: int = 0, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tenor", *map(str, words)], env=environment, input=given, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_predicting_needs_no_package_of_training(tmp_path: Path, without: dict[str, str]) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max")
    found = tenor(["predict", run, "-", "--json", "--explain"], without, given="good film\n\n")
    assert [sorted(json.loads(line)) for line in found.splitlines()] == [
        ["explanation", "known_words", "label", "probability"]
    ] * 2
    texts = tmp_path / "texts.csv"
    texts.write_text("text,id\n" + "good film,1\n" * 20)
    out = tmp_path / "out.parquet"
    tenor(["predict", run, texts, "--out", out, "--workers", 1, "--keep-columns"], without)
    assert out.stat().st_size > 0
    served = (
        "import pathlib, sys; from tenor.serving.process.model import load_served as load; "
        "load(pathlib.Path(sys.argv[1]), 1)"
    )
    subprocess.run([sys.executable, "-c", served, str(run)], env=without, check=True, timeout=200)
    said = tenor(["train", tmp_path / "data", "--out", tmp_path / "new"], without, code=2)
    assert said.startswith("tenor: ") and "which tenor-runtime leaves out" in said and said.count("\n") == 1
