"""Imports go one way: a room knows the rooms before it, never those after it nor its neighbours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"
LEVELS = (
    ("errors",),
    ("world", "progress", "settings", "environment", "memory", "compiled"),
    ("corpus", "engines", "store"),
    ("preparation",),
    ("models", "evaluation", "embedding"),
    ("training",),
    ("prediction",),
    ("serving",),
    ("bench",),
    ("planning", "reports", "doctor"),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """(line, room) of each import of tenor, wherever it stands; `tenor` itself when a public name is taken."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "tenor" and name[1:] != ["__version__"]:
                yield node.lineno, name[1] if len(name) > 1 and name[1] in LEVEL else "tenor"


def violations(source: str, room: str, package: list[str]) -> list[str]:
    found = []
    for line, other in imported_rooms(ast.parse(source), package):
        if other == "tenor" and room != "cli":  # the command line uses the public names as a user does
            found.append(f"line {line}: {room} imports the package's top; import the room itself")
        elif other not in (room, "tenor") and LEVEL[other] >= LEVEL[room]:
            found.append(f"line {line}: {room} imports {other}")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_one_way(file: Path) -> None:
    if file == PACKAGE / "__init__.py":  # the public names come from every room
        return
    room = room_of(file)
    assert room in LEVEL, f"{room} has no place in the order of rooms"
    package = ["tenor", *file.relative_to(PACKAGE).parts[:-1]]
    assert violations(file.read_text("utf-8"), room, package) == []


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("from tenor.training.loop import run", "models"),
        ("def f():\n    import tenor.cli.bar", "reports"),
        ("from tenor import reports", "bench"),
        ("from tenor import load", "serving"),
        ("from ..training import loop", "store"),
        ("from tenor.corpus import labels", "store"),
        ("import tenor", "training"),
    ],
)
def test_a_wrong_import_is_found(source: str, room: str) -> None:
    assert len(violations(source, room, ["tenor", room])) == 1


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("from tenor.store.reader import open_split", "training"),
        ("from . import loop", "training"),
        ("from tenor import __version__", "store"),
        ("from tenor import settings", "cli"),
        ("import tenor", "cli"),
        ("import numpy", "errors"),
    ],
)
def test_a_right_import_passes(source: str, room: str) -> None:
    assert violations(source, room, ["tenor", room]) == []
