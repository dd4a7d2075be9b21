"""Imports go one way: a room imports only the rooms before it, and within a large room the same holds for its modules.

A room is a folder or a module directly in `src/tenor`. A file's place in its room is the first part of its path inside
the room: the name of a module or of a folder.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"
LEVELS = (
    ("errors", "cgroup"),
    ("toml",),
    ("world", "progress", "settings", "options", "environment", "memory", "compiled", "threads", "wording"),
    ("corpus", "engines", "store", "groups"),
    ("preparation",),
    ("models", "evaluation"),
    ("embedding",),
    ("training",),
    ("runtime",),
    ("prediction", "sklearn"),
    ("insights", "serving"),
    ("bench",),
    ("planning", "reports", "doctor"),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# Within the large rooms: a module or folder imports only those before it in this list.
ROOMS = {
    "corpus": (
        "batch",
        "columns",
        "labels",
        "scanning",
        "files",
        "formats",
        "settings",
        "sources",
        "pieces",
        "frames",
        "standard_input",
        "texts",
        "synthetic",
    ),
    "preparation": ("settings", "rules", "tokeniser", "job"),
    "evaluation": (
        "goal",
        "decision",
        "calibration",
        "paired",
        "scores",
        "metrics",
        "behaviour",
        "labelled",
        "survey",
        "label_check",
        "sections",
    ),
    "training": (
        "traits",
        "profiling",
        "batch",
        "balancing",
        "settings",
        "recipe",
        "refusals",
        "job",
        "tallies",
        "loader",
        "optim",
        "tasks",
        "gradients",
        "parameter_server",
        "strategies",
        "runs",
        "loop",
        "assemble",
        "launching",
    ),
    "insights": (
        "times",
        "settings",
        "scoring",
        "reading",
        "rows",
        "row_store",
        "shares",
        "linear",
        "near_duplicates",
        "label_errors",
        "domain",
        "phrases",
        "find",
        "drift",
    ),
    "serving": (
        "settings",
        "replies",
        "limits",
        "token",
        "batches",
        "metrics",
        "process",
        "facts",
        "reload",
        "schemas",
        "page",
        "app",
        "connections",
        "server",
        "checkup",
    ),
    "reports": (
        "values",
        "settings",
        "drawing",
        "runs",
        "result_file",
        "vectors_data",
        "plots",
        "page",
        "registry",
        "sections",
        "report",
    ),
    "bench": (
        "pareto",
        "registry",
        "network",
        "settings",
        "results",
        "journal",
        "measuring",
        "http_load",
        "services",
        "models",
        "scaling_tables",
        "scaling_figures",
        "step_rates",
        "demo_reviews",
        "peers",
        "scenarios",
    ),
    "planning": (
        "settings",
        "quantities",
        "costs",
        "inputs",
        "simulation",
        "step",
        "assumptions",
        "rows",
        "plan",
        "table_plan",
        "questions",
        "experiments",
        "ledger",
        "job_files",
        "result",
        "answers",
    ),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def package_of(file: Path) -> list[str]:
    return ["tenor", *file.relative_to(PACKAGE).parts[:-1]]


def imported_names(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, parts of the full name) of each import from tenor, wherever the import statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name[0] == "tenor")


def imported_rooms(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, room) of each import from tenor; the room is `tenor` for a public name of the package."""
    for line, name in imported_names(tree, package):
        if name[1:] != ["__version__"]:
            yield line, name[1] if len(name) > 1 and name[1] in LEVEL else "tenor"


def violations(source: str, room: str, package: list[str]) -> list[str]:
    found = []
    for line, other in imported_rooms(ast.parse(source), package):
        if other == "tenor" and room != "cli":  # the command line uses the public names as a user does
            found.append(f"line {line}: {room} imports the package's top; import the room itself")
        elif other not in (room, "tenor") and LEVEL[other] >= LEVEL[room]:
            found.append(f"line {line}: {room} imports {other}")
    return found


def inner_violations(source: str, room: str, place: str, package: list[str]) -> list[tuple[str, str]]:
    """Return (imported place, reason) for each import within a large room that ROOMS does not allow."""
    order = ROOMS[room]
    if place not in order:
        return [(place, f"{place} has no place in ROOMS[{room!r}]")]
    found = []
    for line, name in imported_names(ast.parse(source), package):
        if name[1:2] != [room] or name[2:3] == [place]:
            continue
        other = name[2] if len(name) > 2 else room
        if other not in order:
            found.append((other, f"line {line}: {place} imports {other}, which has no place in ROOMS[{room!r}]"))
        elif order.index(other) > order.index(place):
            found.append((other, f"line {line}: {place} imports {other}, which comes after it"))
    return found


@pytest.mark.parametrize("room", sorted({room_of(file) for file in FILES} - {"__init__"}))
def test_imports_go_one_way(room: str) -> None:
    assert room in LEVEL, f"{room} has no place in the order of rooms"
    found = {
        name_of(file): violations(file.read_text("utf-8"), room, package_of(file))
        for file in FILES
        if room_of(file) == room
    }
    assert {name: reasons for name, reasons in found.items() if reasons} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_imports_within_a_room_go_one_way(room: str) -> None:
    found = []
    for file in sorted((PACKAGE / room).rglob("*.py")):
        place = file.relative_to(PACKAGE / room).parts[0].removesuffix(".py")
        if place != "__init__":  # it may collect names from all of the room
            reasons = inner_violations(file.read_text("utf-8"), room, place, package_of(file))
            found += [f"{name_of(file)}: {reason}" for _, reason in reasons]
    assert found == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_in_the_order_of_a_room_exists(room: str) -> None:
    there = {
        path.stem for path in (PACKAGE / room).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(ROOMS[room]) <= there
    assert len(set(ROOMS[room])) == len(ROOMS[room])


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("from tenor.training.loop import run", "models"),
        ("def f():\n    import tenor.cli.console", "reports"),
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


@pytest.mark.parametrize(
    ("source", "place", "other"),
    [
        ("from tenor.training.loop import run", "strategies", "loop"),
        ("def f():\n    import tenor.training.launching.launch", "loop", "launching"),
        ("from tenor.training import assemble", "loop", "assemble"),
        ("from ..loop import run", "strategies", "loop"),
        ("from tenor.training.nowhere import f", "loop", "nowhere"),
        ("import tenor.training", "loop", "training"),
        ("import numpy", "nowhere", "nowhere"),
    ],
)
def test_a_wrong_import_within_a_room_is_found(source: str, place: str, other: str) -> None:
    package = ["tenor", "training", place]
    assert [found for found, _ in inner_violations(source, "training", place, package)] == [other]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("from tenor.training.settings import TrainSettings", "loop"),
        ("from tenor.training.strategies.base import Strategy", "strategies"),
        ("from .base import Strategy", "strategies"),
        ("from ..optim import schedule", "strategies"),
        ("from tenor.training.loop import run", "launching"),
        ("from tenor.store.loop import run", "strategies"),
        ("import numpy", "loop"),
    ],
)
def test_a_right_import_within_a_room_passes(source: str, place: str) -> None:
    assert inner_violations(source, "training", place, ["tenor", "training", place]) == []
