"""Progress without a terminal, rates and tables."""

from __future__ import annotations

import pytest

from tenor.cli.console import Console, table
from tenor.progress import lines
from tenor.progress.lines import Lines, rate


def test_long_work_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [1000.0]
    monkeypatch.setattr(lines.time, "monotonic", lambda: now[0])
    progress = Lines(Console().say)
    progress.start("bench balance", 40, "run")
    for step in range(1, 5):
        now[0] = 1000.0 + 20 * step
        progress.advance(1, f"run {step}")
    assert capsys.readouterr().err.splitlines() == [
        "bench balance  5%  0:12:40 left  0.05 run/s  run 2",
        "bench balance  10%  0:12:00 left  0.05 run/s  run 4",
    ]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Lines(Console().say)
    progress.start("mapping", None, "B")
    for _ in range(100):
        progress.advance(1e6)
    progress.finish()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("speed", "told"),
    [(0.0, "0 B/s"), (0.051, "0.051 B/s"), (12.34, "12.3 B/s"), (2.5e6, "2.5 MB/s"), (3e9, "3.0 GB/s")],
)
def test_a_rate_is_short(speed: float, told: str) -> None:
    assert rate(speed, "B") == told


def test_a_table_without_titles_has_no_head() -> None:
    assert table(["", ""], [["accuracy", 0.875], ["rows", 1200]]) == "accuracy  0.875\nrows      1,200"


def test_floats_have_as_many_decimals_as_asked() -> None:
    shown = table(["", "model", "baseline"], [["accuracy", 1.0, 0.51239], ["AUC", None, 0.5]], decimals=4)
    assert shown.splitlines()[2:] == ["accuracy  1.0000    0.5124", "AUC            –    0.5000"]


def test_names_of_strangers_do_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "a\x1b]0;owned\x07\x9b31m\r\x00\x7f é\t日\n"
    told = "a\\x1b]0;owned\\x07\\x9b31m\\x0d\\x00\\x7f é\t日\n"
    shown = Console()
    shown.say(odd)
    shown.error("\x1b[2J")
    shown.result({}, odd)
    shown.result({"name": "\x1b[31m"})
    out, err = capsys.readouterr()
    assert err == f"{told}\ntenor: \\x1b[2J\n"
    assert out.startswith(told) and "\x1b" not in out
