"""The list of mutants is in step with the code, and its tool tells killed, survived and broken apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mutants
import pytest
from mutants import Mutant

EVERY = mutants.load_mutants(mutants.ROOT / "tests" / "mutants")


def problems(mutant: Mutant) -> list[str]:
    """Say why the change cannot be made and which of its tests do not exist."""
    found = [mutants.text_problem(mutants.ROOT, mutant)]
    for test in mutant.tests:
        name, _, function = test.partition("::")
        file = mutants.ROOT / name
        is_there = file.is_file() and f"def {function.partition('[')[0]}(" in file.read_text("utf-8")
        found.append("" if is_there or (file.is_file() and not function) else f"{test} does not exist")
    return [problem for problem in found if problem]


def test_every_change_can_be_made_and_its_tests_exist() -> None:
    found = {mutant.name: problems(mutant) for mutant in EVERY}
    assert len(found) > 400
    assert {name: reasons for name, reasons in found.items() if reasons} == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"old": "no such text"}, "its old text occurs 0 times"),
        ({"tests": ("tests/none.py::test_a",)}, "tests/none.py::test_a does not exist"),
        ({"tests": ("tests/test_mutants.py::test_none",)}, "tests/test_mutants.py::test_none does not exist"),
    ],
)
def test_an_entry_that_is_not_in_step_is_found(change: dict[str, Any], reason: str) -> None:
    (found,) = problems(replace(EVERY[0], **change))
    assert found.startswith(reason)


TEST = """
from toy import larger
def test_numbers():
    assert larger(2, 1) == 2
def test_wrong():
    assert larger(2, 1) == 1
@pytest.mark.parametrize("number", [1, 2])
def test_each(number):
    assert larger(number, 0) == number
"""
LARGER = "return a if a > b else b"


def toy(name: str, new: str, test: str = "test_numbers", old: str = LARGER) -> Mutant:
    return Mutant(name, "src/toy.py", old, new, (f"tests/test_toy.py::{test}",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("src", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "toy.py").write_text(f"def larger(a, b):\n    {LARGER}\n")
    (tmp_path / "tests" / "test_toy.py").write_text("import pytest\n" + TEST)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-q"\npythonpath = ["src"]\n')
    return tmp_path


@pytest.mark.soak
def test_killed_survived_and_broken_are_told_apart(tree: Path) -> None:
    before = (tree / "src" / "toy.py").read_text()
    tried = [
        toy("the smaller one", LARGER.replace(">", "<")),
        toy("no mistake for the numbers tested", LARGER.replace(">", ">=")),
        toy("it never ends, seen by all parameters", "while True:\n        pass", "test_each"),
        toy("text that is not there", "return b", old="return c"),
        toy("text that is not Python", "return ("),
        toy("a test that is not there", "return b", "test_nothing"),
        toy("a test that fails anyway", "return b", "test_wrong"),
    ]
    found = {outcome.mutant.name: outcome for outcome in mutants.check(tree, tried, jobs=2, timeout=5.0)}
    assert [found[one.name].verdict for one in tried] == ["killed", "survived", "killed", *["broken"] * 4]
    assert [found[one.name].reason for one in tried[3:]] == [
        "its old text occurs 0 times in src/toy.py",
        "its new text is not Python: '(' was never closed (toy.py, line 2)",
        "tests/test_toy.py::test_nothing is not a test",
        "tests/test_toy.py::test_wrong fails without the change",
    ]
    assert (tree / "src" / "toy.py").read_text() == before


def test_entries_that_say_too_little_or_the_same_twice_are_refused(tmp_path: Path) -> None:
    entry = "[[mutant]]\nname = 'a'\nfile = 'f'\nold = 'o'\nnew = 'n'\ntests = ['t']\n"
    for text, words in ((entry.replace("new = 'n'\n", ""), "needs"), (entry * 2, "two mutants named 'a'")):
        (tmp_path / "some.toml").write_text(text)
        with pytest.raises(ValueError, match=words):
            mutants.load_mutants(tmp_path)
