"""Listing, filtering and sorting run folders, trusted or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command import call_tenor
from helpers.runs import write_run

import tenor
from tenor.errors import UsageError
from tenor.reports.runs import listing
from tenor.reports.runs.filters import Condition, parse_conditions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs on different levels, one of them unfinished, beside folders that are not runs."""
    top = tmp_path_factory.mktemp("runs")
    write_run(top / "a", epochs=2, steps=3, workers=1, settings={"cell": "gru", "seed": 9, "bidirectional": True})
    write_run(top / "deep" / "er" / "b", epochs=3, steps=3, workers=4, settings={"cell": "lstm", "seed": 10})
    write_run(top / "c", epochs=2, steps=3, settings={"cell": "lstm", "workers": "auto"})
    (top / "c" / "result.json").unlink()
    lines = (top / "c" / "metrics.jsonl").read_text("utf-8").splitlines(keepends=True)
    (top / "c" / "metrics.jsonl").write_text("".join(lines[:4]), "utf-8")  # the first epoch
    (top / "empty" / "er").mkdir(parents=True)
    write_run(top / "1" / "2" / "3" / "4", epochs=1, steps=3)  # too deep
    (top / ".hidden").mkdir()
    (top / "link").symlink_to(top / "a")
    (top / "other").mkdir()
    (top / "other" / "config.json").write_text('{"name": "a web page"}')
    return top


def names(found: list[tenor.RunSummary], top: Path) -> list[str]:
    return [Path(run.run).relative_to(top).as_posix() for run in found]


def test_runs_are_found_three_levels_deep_and_summarised(folder: Path) -> None:
    found = tenor.list_runs(folder)
    assert names(found, folder) == ["a", "c", "deep/er/b"]
    one, unfinished, _ = found
    result = json.loads((folder / "a" / "result.json").read_text("utf-8"))
    assert (one.state, one.workers, one.epochs, one.steps) == ("finished", 1, 2, 6)
    assert (one.train_rows, one.vector_seconds) == (25_000, 12.5) and unfinished.train_rows is None
    assert (
        one.test_accuracy == result["test"]["accuracy"] and one.calibration_error == result["test"]["calibration_error"]
    )
    assert one.settings["cell"] == one.cell == "gru"
    assert (unfinished.state, unfinished.epochs, unfinished.workers, unfinished.test_accuracy) == (
        "unfinished",
        1,
        None,
        None,
    )
    assert unfinished.valid_accuracy is not None
    assert names(tenor.list_runs([folder / "deep", folder / "a", folder / "a"]), folder) == ["deep/er/b", "a"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("cell=gru", ["a"]),
        ("cell!=gru", ["c", "deep/er/b"]),
        ("seed<10", ["a"]),
        ("seed<=10,cell=lstm", ["deep/er/b"]),
        ("workers>1", ["deep/er/b"]),
        ("test_accuracy>0.5, state=finished", ["a", "deep/er/b"]),
        ("bidirectional=yes", ["a"]),
        ("test-accuracy>=2", []),
        ("seed=10.0", ["deep/er/b"]),
        ("test_accuracy=", ["c"]),
    ],
)
def test_conditions(folder: Path, where: str, expected: list[str]) -> None:
    assert names(tenor.list_runs(folder, tenor.RunsSettings(where=where)), folder) == expected


def test_sorting_and_limits(folder: Path) -> None:
    def ordered(sort: str, limit: int = 0) -> list[str]:
        return names(tenor.list_runs(folder, tenor.RunsSettings(sort=sort, limit=limit)), folder)

    assert ordered("seed") == ["a", "deep/er/b", "c"]  # as numbers; a run without a value comes last
    assert ordered("-seed") == ["deep/er/b", "a", "c"]
    assert ordered("-cell", 2) == ["c", "deep/er/b"]


def test_wrong_conditions_and_names_are_refused(folder: Path) -> None:
    for where in ("cell", "cell~x", "seed>many", "=3", "seed<"):
        with pytest.raises(UsageError, match="where cannot be"):
            tenor.list_runs(folder, tenor.RunsSettings(where=where))
    for options in ({"where": "speed=3"}, {"sort": "speed"}):
        with pytest.raises(UsageError, match=r"names 'speed', which no run has; choose among .*test_accuracy"):
            tenor.list_runs(folder, tenor.RunsSettings(**options))
    with pytest.raises(UsageError, match="does not exist"):
        tenor.list_runs(folder / "nowhere")
    with pytest.raises(UsageError, match="is not a folder"):
        tenor.list_runs(folder / "other" / "config.json")
    with pytest.raises(UsageError, match="flips cannot be -1"):
        tenor.RunsSettings(flips=-1)


def test_a_condition_on_odd_values() -> None:
    for value in (None, [], {}, "x", float("nan")):
        assert not Condition("a", "<", "3").holds({"a": value})
    assert Condition("a", "=", "[]").holds({"a": []})
    assert parse_conditions(" a = b = c ") == [Condition("a", "=", "b = c")]


def test_too_many_folders_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_FOLDERS", 5)
    with pytest.raises(UsageError, match="more than 5 folders"):
        tenor.list_runs(folder)


ODD: list[Any] = [None, True, "x", [], {}, 1e308, "\x1b[31mred\n", [[1]], {"accuracy": "x"}]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_values_are_left_out(tmp_path: Path, odd: Any) -> None:
    write_run(tmp_path / "run", epochs=1, steps=2, settings={"cell": odd, "workers": odd, "\x1b[0m": odd})
    names = ("test", "valid", "workers", "seconds", "steps", "epochs", "weights_sha256")
    names += ("train_rows", "vector_seconds")
    (tmp_path / "run" / "result.json").write_text(json.dumps(dict.fromkeys(names, odd)))
    (tmp_path / "run" / "environment.json").write_text(json.dumps({"date": odd, "machine": odd}))
    (found,) = tenor.list_runs(tmp_path)
    shown = [str(value) for name, value in found.values.items() if name not in found.settings]
    assert not any("\x1b" in text or "\n" in text for text in [*shown, *found.settings])


def test_the_command_lists_and_says_what_it_skips(folder: Path) -> None:
    got = call_tenor("runs", folder, "--where", "state=finished", "--json").ok()
    assert [run["cell"] for run in got.json["runs"]] == ["gru", "lstm"]
    assert list(got.json["skipped"]) == [str(folder / "other")] and f"skipped {folder / 'other'}: " in got.stderr
    shown = call_tenor("runs", folder / "a", folder / "deep", "--sort=-seed").ok().stdout.splitlines()
    assert shown[0].split()[:3] == ["run", "date", "state"] and shown[2].startswith(str(folder / "deep" / "er" / "b"))
    assert "no runs" in call_tenor("runs", folder / "empty").ok().stdout
    assert "--compare needs at least two runs" in call_tenor("runs", folder / "a", "--compare").failed(2)


def test_a_linear_model_has_no_cell(tmp_path: Path) -> None:
    write_run(tmp_path / "run", epochs=1, steps=2, settings={"model": "wide", "cell": "conv"})
    assert [run.cell for run in tenor.list_runs(tmp_path)] == [None]
    assert tenor.list_runs(tmp_path, where="cell=conv") == []
