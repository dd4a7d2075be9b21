"""Run folders for services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.models import write_model
from helpers.runs import write_run
from helpers.service import Client, served

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")


@pytest.fixture(scope="session", autouse=True)
def loop_library() -> None:
    """uvloop keeps a pipe for signals from its first loop to the end of the process."""
    import uvloop

    uvloop.run(asyncio.sleep(0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the page shows."""
    out = write_run(tmp_path / "run", epochs=1, steps=2)
    (out / "README.md").write_text("# A card\n\n- a fact\n\n| | test |\n|---|---|\n| accuracy | 0.9 |\n")
    kinds = {"negation": {"passed": 8, "cases": 10, "hard": False}, "irony": {"passed": 1, "cases": 4, "hard": True}}
    (out / "behaviour.json").write_text(json.dumps({"kinds": kinds}))
    return out


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with served(folder) as found:
        yield found


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with a real, untrained model."""
    return write_model(tmp_path / "model")
