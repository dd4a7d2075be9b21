"""`tenor plan`: the JSON that scripts rely on, files, ledger, and one-line errors."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from helpers.command import run_tenor
from helpers.planned import measurement, write_measured_run
from typer.testing import CliRunner

from tenor.cli.commands.plan import plan
from tenor.planning.inputs.measurement import write_measurement

COURSE = Path(__file__).parent / "course_runs.csv"


def invoke(*words: object, code: int = 0) -> str:
    """Run the command in this process; return what it prints, or its error."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("plan")(plan)
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == code, ran.output
    return ran.stdout if code == 0 else ran.stderr


def as_json(*words: object) -> Any:
    return json.loads(invoke(*words, "--json"))


FIGURES = ("seconds", "seconds_low", "seconds_high", "dollars", "efficiency", "pareto", "workers")


def test_json_page_and_ledger(tmp_path: Path) -> None:
    run = write_measured_run(tmp_path / "run")
    words = ("--workers", "1,2,4", "--under", "1h", "--out", tmp_path / "plan.json", "--json")
    result = run_tenor("plan", run, *words).ok().json
    assert [row["workers"] for row in result["rows"]] == [1, 2, 4]
    assert all(name in row for row in result["rows"] for name in FIGURES)
    assert result["scenario"] == "plan" and result["chosen"] is not None and "under" in result["answers"][0]
    assert json.loads((tmp_path / "plan.json").read_text("utf-8")) == result
    page = (tmp_path / "plan.html").read_text("utf-8")
    assert "Where the numbers come from" in page and "9 of 10" in page
    assert len((tmp_path / "predictions.jsonl").read_text("utf-8").splitlines()) == 3


def test_text_and_job_file(tmp_path: Path) -> None:
    run = write_measured_run(tmp_path / "run", 2)
    words = (run, "--workers", "2,8", "--write", "slurm", "--job", tmp_path / "job", "--accuracy", "0.81")
    text = invoke(*words, "--ledger", tmp_path / "own.jsonl")
    assert "validation accuracy is 0.81" in text and "P: no other row" in text and "←" in text and "Wrote" in text
    assert "srun" in (tmp_path / "job").read_text("utf-8") and (tmp_path / "own.jsonl").exists()
    assert "exists already" in invoke(*words, code=2)


def test_the_time_to_prepare_is_shown_and_counts_against_a_limit(tmp_path: Path) -> None:
    write_measurement(measurement(prepare_bytes_per_s=1e7), tmp_path / "measured.json")
    words = (tmp_path / "measured.json", "--workers", "1,2", "--under", "4m")
    assert "  prepare  " not in invoke(*words)
    text = invoke(*words, "--gigabytes", "2")
    assert "  prepare  " in text and "3.3 min" in text and "2 workers" in text


def test_a_table_of_runs() -> None:
    text = invoke("--from", COURSE)
    assert "Cheapest: 1 × p2.xlarge ($2.25, 2.5 h)." in text and "Fastest: 2 × g3.16xlarge" in text
    (head,) = (line for line in text.splitlines() if line.startswith("workers"))
    assert head.split() == ["workers", "machines", "total", "interval", "dollars", "efficiency"]  # the known columns
    assert "is 4 workers on 1 × g3.16xlarge: 34 min, $2.58." in invoke("--from", COURSE, "--under", "1h")  # no interval
    rows = as_json("--from", COURSE, "--workers", "16")["rows"]
    predicted = [(row["machine"], row["machines"], row["workers"]) for row in rows[9:]]
    assert predicted == [("p2.xlarge", 16, 16), ("g3.4xlarge", 16, 16), ("g3.16xlarge", 4, 16)]  # the last has 4 GPUs
    rows = as_json("--from", COURSE, "--workers", "5,6,8")["rows"][9:]
    assert {row["machine"] for row in rows} == {"p2.xlarge", "g3.4xlarge"}  # 2 machines of 4 GPUs were measured


def test_a_measurement_file_and_scores(tmp_path: Path) -> None:
    write_measurement(measurement(), tmp_path / "measured.json")
    result = as_json(tmp_path / "measured.json", "--workers", "1")
    assert "measured.json" in result["source"]
    write_measured_run(tmp_path / "again", hidden=64, date="2099-01-01T00:00:00Z")
    scores = as_json("--score", tmp_path)
    assert (scores["runs"], scores["rows"][0]["run"]) == (1, "again")
    assert "again" in invoke("--score", tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to plan from"),
        (("--measure", "--score"), "cannot be combined"),
        (("run", "--from", "table.csv"), "takes no SOURCE"),
        (("--from", "missing.csv"), "does not exist"),
        (("missing.json",), "cannot be read"),
        (("--from", str(COURSE), "--write", "slurm"), "needs a plan from a run"),
        (("--from", str(COURSE), "--machine", "c5.large"), "--machine has no effect with --from"),
        (("--from", str(COURSE), "--gigabytes", "2"), "--gigabytes has no effect with --from"),
        (("--from", str(COURSE), "--accuracy", "0.9"), "add a column `accuracy`"),
        (("--from", str(COURSE), "--sums", "tree"), "--sums has no effect with --from"),
        (("runs", "--score", "--under", "1h"), "--under has no effect with --score"),
        (("runs", "--score", "--out", "scores.json"), "--out has no effect with --score"),
        (("data", "--measure", "--data", "data"), "give the prepared data as SOURCE"),
        (("run", "--accuracy", "0.9", "--epochs", "3"), "--epochs has no effect with --accuracy"),
        (("run", "--sync-every", "8"), "--sync-every has no effect with --strategy auto"),
        (("run", "--out", "page.html"), "name a .json file"),
        (("run", "--under", "soon"), "--under cannot be"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(words: tuple[str, ...], message: str) -> None:
    lines = invoke(*words, code=2).strip().splitlines()
    assert len(lines) == 1 and message in lines[0]


def test_a_folder_without_a_run_is_code_1(tmp_path: Path) -> None:
    assert "not a run folder" in invoke(tmp_path, code=1)
