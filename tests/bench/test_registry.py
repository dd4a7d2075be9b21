"""Scenarios are found by their files, with the options that they declare."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex
import shutil
from pathlib import Path

import pytest
from helpers.command import run_tenor

from tenor.bench import registry
from tenor.bench.scenarios import SCENARIOS
from tenor.bench.settings import BenchSettings

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "contributing" / "new-scenario.md").read_text("utf-8")
FIELDS = {field.name for field in dataclasses.fields(BenchSettings)}


def test_files_and_folders_that_declare_options_are_scenarios(tmp_path: Path) -> None:
    texts = {
        "__init__.py": "OPTIONS = ('rows',)",
        "two_words.py": 'import numpy\n\nOPTIONS = (\n    "workers",\n    "rows",\n)  # a comment',
        "none.py": "OPTIONS = ()",
        "helper.py": "NOT_OPTIONS = ('rows',)",
        "folder/__init__.py": "OPTIONS = ('data',)",
        "folder/helper.py": "OPTIONS = ('task',)",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert registry.find_scenarios(tmp_path) == {"folder": ("data",), "none": (), "two-words": ("workers", "rows")}


def test_the_table_has_the_scenarios() -> None:
    names = {"balance", "busy", "large-batch", "prepare", "scaling", "strategies", "train"}
    assert names <= set(SCENARIOS)
    assert SCENARIOS["large-batch"] == "tenor.bench.scenarios.large_batch"


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_text_declares_what_the_module_has(name: str) -> None:
    module = importlib.import_module(SCENARIOS[name])
    assert registry.find_scenarios()[name] == module.OPTIONS
    assert set(module.OPTIONS) < FIELDS and callable(module.run)


@pytest.mark.parametrize("option", sorted(FIELDS))
def test_every_option_is_taken_by_all_scenarios_or_by_some(option: str) -> None:
    """An option that no scenario declares would be accepted by all of them and do nothing."""
    assert bool(registry.scenarios_with(option)) is (option not in ("repeats", "warmups"))


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


def test_the_example_of_the_guide_works_as_written(tmp_path: Path) -> None:
    """In a copy of the package: one new file, then the command that the guide shows."""
    shutil.copytree(ROOT / "src" / "tenor", tmp_path / "tenor", ignore=shutil.ignore_patterns("__pycache__"))
    file = re.search(r"`src/(tenor/bench/scenarios/\w+\.py)`:", GUIDE)
    assert file is not None
    (tmp_path / file[1]).write_text(block("python"), "utf-8")
    program, *words = shlex.split(block("sh"))
    copy = {"PYTHONPATH": str(tmp_path)}
    result = run_tenor(*words, "--json", env=copy).ok().json
    assert (program, result["scenario"]) == ("tenor", "hashing")
    assert [(row["name"], row["megabytes"], row["repeats"]) for row in result["rows"]] == [
        ("sha256", 2, 2),
        ("blake2b", 2, 2),
    ]
    assert all(row["mb_per_s"] == pytest.approx(2 / row["seconds"]) for row in result["rows"])
    shown = " ".join(run_tenor("bench", "--help", env=copy).ok().stdout.replace("│", " ").split())
    assert "Only for hashing, predict or prepare." in shown
    assert "--workers 4 has no effect with bench hashing" in run_tenor(*words, "--workers", "4", env=copy).failed(2)
