"""The tables of strategies, tasks and cells: light to load, complete, and the only place where names are listed."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
from dataclasses import fields

import pytest
from helpers.processes import SOURCE, child_environment, python
from torch import nn

from tenor.models.deep.cells import CELLS
from tenor.training.settings import TrainSettings
from tenor.training.strategies import Strategy
from tenor.training.tasks.base import Task
from tenor.training.traits import STRATEGIES, TASKS, has_server, num_computing, owners_of, strategy_name

NAMES = {field.name for field in fields(TrainSettings)}


@pytest.mark.parametrize(("table", "kind"), [(STRATEGIES, Strategy), (TASKS, Task), (CELLS, nn.Module)])
def test_every_entry_names_a_class_of_its_kind(table: dict[str, object], kind: type) -> None:
    for name, traits in table.items():
        found = pkgutil.resolve_name(traits.implementation)  # type: ignore[attr-defined]
        assert issubclass(found, kind), name


def test_every_strategy_is_a_class_of_its_own() -> None:
    assert len({traits.implementation for traits in STRATEGIES.values()}) == len(STRATEGIES)


def test_settings_named_in_the_table_exist() -> None:
    for traits in STRATEGIES.values():
        assert set(traits.settings) <= NAMES
        assert {refusal.setting for refusal in traits.refuses} <= NAMES
    assert owners_of("sync_every") == ("local-sgd", "diloco", "hogwild")
    assert owners_of("epochs") == ()


def test_the_first_of_several_processes_serves_and_does_not_compute() -> None:
    assert [has_server("async", count) for count in (1, 2, 5)] == [False, True, True]
    assert [num_computing("async", count) for count in (1, 2, 5)] == [1, 1, 4]
    assert [num_computing("auto", count) for count in (1, 2)] == [1, 2]
    assert [strategy_name("auto", count) for count in (1, 2)] == ["single", "allreduce"]


def test_the_tables_load_neither_torch_nor_numpy() -> None:
    look = "import sys, tenor.training.settings; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    found = subprocess.run(python("-c", look), env=child_environment(), capture_output=True, check=True, text=True)
    assert found.stdout.strip() == "[]"


def test_no_module_outside_asks_which_task_it_has() -> None:
    home, names = SOURCE / "tenor" / "training" / "tasks", "|".join(TASKS)
    compared = re.compile(rf"\btask (?:==|!=|in|not in) \W*(?:{names})\W")
    files = [file for file in (SOURCE / "tenor").rglob("*.py") if home not in file.parents]
    assert [str(file) for file in files if compared.search(file.read_text("utf-8"))] == []


def test_no_module_outside_asks_which_strategy_it_has() -> None:
    """Others use the base class and the table; the classes are imported within their folder alone."""
    home = SOURCE / "tenor" / "training" / "strategies"
    shared = {"base", "grid"}
    for file in (SOURCE / "tenor").rglob("*.py"):
        if home in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tenor.training.strategies."):
                assert str(node.module).rpartition(".")[2] in shared, f"{file}: line {node.lineno}"
