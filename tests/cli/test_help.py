"""Every command explains itself, quickly: help with an example, JSON, completion, no heavy import."""

import re

import pytest
from helpers.command import run_tenor

from tenor.cli import COMMANDS

HEAVY = ("torch", "pyarrow", "matplotlib", "numba", "numpy", "h5py", "pandas")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_an_example_and_json(name: str) -> None:
    words = run_tenor(name, "--help").ok().stdout
    example = " ".join(words.split()).partition("Example: ")[2]
    assert f"tenor {name}" in example
    assert "--json" in words and "--debug" in words


def test_the_commands_are_listed_in_order() -> None:
    words = run_tenor("--help").ok().stdout
    places = [re.search(rf"^\W+{name} ", words, re.MULTILINE) for name in COMMANDS]
    assert None not in places
    assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_no_heavy_import(option: str) -> None:
    lines = run_tenor(option, python_options=("-X", "importtime")).ok().stderr.splitlines()
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in lines if line.startswith("import time:")}
    assert "tenor" in imported and imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_produced(shell: str) -> None:
    script = run_tenor(env={"_TENOR_COMPLETE": f"source_{shell}"}).ok().stdout
    assert "_TENOR_COMPLETE" in script and "tenor" in script


def test_completion_offers_the_commands() -> None:
    env = {"_TENOR_COMPLETE": "complete_bash", "COMP_WORDS": "tenor ", "COMP_CWORD": "1"}
    assert set(COMMANDS) <= set(run_tenor(env=env).ok().stdout.split())


def test_no_command_is_wrong_usage() -> None:
    assert run_tenor("nonsense").code == 2
