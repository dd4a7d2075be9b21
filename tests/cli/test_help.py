"""The help of every command: headings, an example, 80 columns, completion, and no slow imports."""

import dataclasses
import functools
import re
from typing import Any

import pytest
import typer
from helpers.command import run_tenor

from tenor.bench import registry, scenarios
from tenor.cli import COMMANDS, build_app
from tenor.settings import either
from tenor.training.settings import (
    ASYNC,
    BALANCING,
    DATA,
    MODEL,
    OPTIMISATION,
    OUTPUT,
    STOPPING,
    WORKERS,
    TrainSettings,
)

HEAVY = ("torch", "pyarrow", "matplotlib", "numba", "numpy", "h5py", "pandas")


@functools.cache
def narrow_help(name: str) -> str:
    """The help of a command in 80 columns."""
    return run_tenor(name, "--help", env={"COLUMNS": "80"}).ok().stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_an_example_and_json(name: str) -> None:
    words = narrow_help(name)
    example = " ".join(words.split()).partition("Example: ")[2]
    assert f"tenor {name}" in example
    assert "--json" in words and "--debug" in words


def test_the_commands_are_listed_in_order() -> None:
    words = run_tenor("--help").ok().stdout
    places = [re.search(rf"^\W+{name} ", words, re.MULTILINE) for name in COMMANDS]
    assert None not in places
    assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns(name: str) -> None:
    words = narrow_help(name)
    assert max(map(len, words.splitlines())) <= 80 and "…" not in words
    group: Any = typer.main.get_command(build_app())
    options = {flag for p in group.commands[name].params for flag in (*p.opts, *p.secondary_opts) if flag[:2] == "--"}
    assert [flag for flag in options if not re.search(rf" {flag} ", words)] == []


def test_the_options_of_train_stand_under_headings() -> None:
    words = narrow_help("train")
    headings = {OUTPUT, DATA, MODEL, OPTIMISATION, WORKERS, ASYNC, BALANCING, STOPPING}
    assert headings <= set(re.findall(r"^╭─ (.+?) ─", words, re.MULTILINE))
    assert {field.metadata["group"] for field in dataclasses.fields(TrainSettings)} == headings


@pytest.mark.parametrize(
    ("name", "option", "only"),
    [
        ("train", "staleness", "Only with --strategy async."),
        ("train", "sync_every", "Only with --strategy local-sgd, diloco or hogwild."),
        ("bench", "batch_sizes", f"Only for {either(registry.scenarios_with('batch_sizes'))}."),
    ],
)
def test_an_option_says_where_alone_it_works(name: str, option: str, only: str) -> None:
    group: Any = typer.main.get_command(build_app())
    [parameter] = [p for p in group.commands[name].params if p.name == option]
    assert parameter.help.endswith(f" {only}")


def test_bench_lists_the_scenarios() -> None:
    words = narrow_help("bench")
    lines = registry.describe_scenarios()
    assert list(lines) == list(scenarios.SCENARIOS) and all(line.endswith(".") for line in lines.values())
    assert all(f"- {name}: {line} " in " ".join(words.split()) for name, line in lines.items())


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
