"""Progress of the Python functions: in notebooks by default, elsewhere only when asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tenor
from tenor.progress import SILENT, shown
from tenor.progress.bar import Bar
from tenor.progress.lines import Lines
from tenor.progress.notebook import Notebook


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What stands below the cell of a made-up notebook; a drawing takes the place of the one before."""
    drawn: list[str] = []

    class Handle:
        def __init__(self, content: str) -> None:
            self.place = len(drawn)
            drawn.append(content)

        def update(self, content: str) -> None:
            drawn[self.place] = content

    shell: Any = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())
    display: Any = ModuleType("IPython.display")
    display.HTML = str
    display.display = lambda content, display_id: Handle(content)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return drawn


def test_a_notebook_shows_progress_by_default(cell: list[str], tmp_path: Path) -> None:
    tenor.generate(tmp_path / "reviews.jsonl", rows=50)
    assert len(cell) == 1
    assert cell[0].startswith("generating · ")
    assert "rows/s" in cell[0]
    tenor.generate(tmp_path / "reviews.jsonl", rows=50, progress=False)
    assert len(cell) == 1


def test_a_bar_is_drawn_in_its_place(cell: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tenor.progress.notebook.time.monotonic", lambda: now[0])
    progress = Notebook()
    progress.start("train <1>", 40, "step")
    now[0] += 10
    progress.advance(10, "loss 0.4")
    text = "train &lt;1&gt; · 1.0 step/s · 0:00:10 · 0:00:30 left · loss 0.4"
    assert cell == [f'<progress value="10" max="40"></progress> {text}']
    progress.advance(1)  # too soon to be drawn
    assert text in cell[0]
    progress.start("measure", None, "row")
    assert len(cell) == 2
    assert cell[1].startswith("<progress></progress> measure")


def test_scripts_show_progress_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(None) is SILENT
    assert shown(False) is SILENT
    assert shown(SILENT) is SILENT
    assert isinstance(shown(True), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(shown(True), Bar)


def test_ipython_on_a_terminal_is_no_notebook(cell: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)
    assert shown(None) is SILENT
