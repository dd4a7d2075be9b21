"""Finds the scenarios and the options that each of them takes, without importing the scenarios.

A scenario is a file `scenarios/NAME.py`, or `scenarios/NAME/__init__.py` if it needs several files, that declares its
options in a line such as `OPTIONS = ("workers", "rows")`. The declaration is read from the source text, because
importing a scenario loads torch, and `tenor --help` has to stay fast.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "scenarios"
_DECLARATION = re.compile(r"^OPTIONS = (\([^()]*\))", re.MULTILINE)


def find_scenarios(folder: Path = FOLDER) -> dict[str, tuple[str, ...]]:
    """Return the options of each scenario in a folder, by the name of the scenario: `large_batch.py` is `large-batch`.

    Files without a declaration of options are not scenarios.
    """
    files = {file.stem: file for file in folder.glob("*.py") if file.stem != "__init__"}
    files |= {file.parent.name: file for file in folder.glob("*/__init__.py")}
    found = {name: _DECLARATION.search(file.read_text("utf-8")) for name, file in sorted(files.items())}
    return {name.replace("_", "-"): ast.literal_eval(match[1]) for name, match in found.items() if match}


def describe_scenarios(folder: Path = FOLDER) -> dict[str, str]:
    """Return one sentence about each scenario: the first paragraph of its docstring, after ``Scenario `name`:``."""
    sentences = {}
    for name in find_scenarios(folder):
        stem = name.replace("-", "_")
        file = next(path for path in (folder / f"{stem}.py", folder / stem / "__init__.py") if path.exists())
        paragraph = (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n\n")[0]
        sentence = " ".join(paragraph.split()).removeprefix(f"Scenario `{name}`: ")
        sentences[name] = sentence[:1].upper() + sentence[1:]
    return sentences


def module_name(scenario: str) -> str:
    """Return the module that holds a scenario, such as `tenor.bench.scenarios.large_batch`."""
    return f"tenor.bench.scenarios.{scenario.replace('-', '_')}"


def scenarios_with(option: str) -> tuple[str, ...]:
    """Return the names of the scenarios that take an option, given as the field of the settings."""
    return tuple(name for name, options in _scenarios().items() if option in options)


@functools.cache
def _scenarios() -> dict[str, tuple[str, ...]]:
    return find_scenarios()
