"""The progress bar on a narrow terminal."""

from __future__ import annotations

import io

from rich.console import Console

from tenor.progress.bar import Bar


def test_a_straggler_is_seen_whole_on_80_columns() -> None:
    bar = Bar()
    bar._console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    bar.start("train", 1000, "step")
    note = "worker 1: 3.0×  loss 0.4321  1,234 samples/s"
    bar.advance(300, note)
    assert bar._progress is not None
    drawn = Console(file=(out := io.StringIO()), width=80, color_system=None)
    drawn.print(bar._progress.get_renderable())
    bar.finish()
    [line] = out.getvalue().splitlines()
    assert line.startswith("train") and "step/s 0:00:0" in line and line.endswith(note)
