"""One word per concept: no two classes share a name, and no folder has two modules named by forms of one word."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"
FILES = sorted(PACKAGE.rglob("*.py"))
_ENDING = re.compile(r"(_?up|ing|ed|er|es|s|e)$")


def root(name: str) -> str:
    """The part of a name that `balance`, `balancer` and `balancing` share."""
    return _ENDING.sub("", name)


def test_no_two_classes_share_a_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_no_folder_has_two_forms_of_one_word() -> None:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in FILES:
        if file.stem not in ("__init__", "__main__"):
            found[file.parent.relative_to(PACKAGE).as_posix(), root(file.stem)].append(file.stem)
    assert {place: same for place, same in found.items() if len(same) > 1} == {}


@pytest.mark.parametrize("pair", [("balance", "balancer"), ("served", "serving"), ("warm", "warmup")])
def test_such_a_pair_is_noticed(pair: tuple[str, str]) -> None:
    assert root(pair[0]) == root(pair[1])
    assert root("shard") != root("shares")
