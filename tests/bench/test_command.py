"""`tenor bench` with a scenario that belongs to the tests."""

import importlib
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tenor.bench import scenarios
from tenor.bench.settings import BenchSettings
from tenor.cli.commands.bench import bench
from tenor.errors import UsageError


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setitem(scenarios.SCENARIOS, "scaling", "bench.fake_scenario")
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("bench")(bench)
    return app


def test_json_and_file_are_the_same(app: typer.Typer, tmp_path: Path) -> None:
    words = ["scaling", "--workers", "1,2,4", "--repeats", "2", "--json", "--out", str(tmp_path / "result.json")]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    result = json.loads(ran.stdout)
    assert result == json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert "workers-4" in (tmp_path / "result.html").read_text("utf-8")
    assert [(row["workers"], row["samples_per_s"], row["repeats"]) for row in result["rows"]] == [
        (1, 100.0, 2),
        (2, 200.0, 2),
        (4, 400.0, 2),
    ]


def test_the_text_has_a_table_and_the_machine(app: typer.Typer) -> None:
    ran = CliRunner().invoke(app, ["scaling", "--workers", "1"])
    assert "samples_per_s" in ran.stdout and "workers-1" in ran.stdout and "cores" in ran.stdout


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["scaling", "--out", "page.html"], ["scaling", "--workers", "0"], ["scaling", "--workers", "two"]],
)
def test_wrong_usage_is_code_2(app: typer.Typer, words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 2


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_every_scenario_can_be_run(name: str) -> None:
    assert callable(importlib.import_module(scenarios.SCENARIOS[name]).run)


def test_workers_are_numbers() -> None:
    assert BenchSettings(workers="1, 2,8").worker_counts() == (1, 2, 8)
    with pytest.raises(UsageError, match="workers"):
        BenchSettings(workers="").worker_counts()
