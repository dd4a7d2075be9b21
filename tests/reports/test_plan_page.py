"""The pages of plans and scaling experiments: every number with unit, interval and source, and odd files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import CHROMIUM, browse
from helpers.planned import measurement

import tenor
from tenor.errors import TenorError, UsageError
from tenor.planning.answers import plan_measurement, plan_runs
from tenor.planning.settings import PlanSettings
from tenor.reports import page
from tenor.reports.plots.forecasts import parts_by_workers, time_by_workers
from tenor.reports.plots.scaling.stages import stage_scaling
from tenor.reports.result_file import join_scaling, parse_result
from tenor.store.strict import strict_json

COURSE = Path(__file__).parents[1] / "planning" / "course_runs.csv"
MACHINE = {"machine": {"processor": "Test CPU", "cores": 2, "architecture": "x", "memory_gib": 8.0}}


def plan_file(folder: Path, **options: Any) -> Path:
    result = plan_measurement(measurement(), PlanSettings(**{"workers": "1-16", **options}))
    (folder / "plan.json").write_text(strict_json(result.as_dict()), "utf-8")
    return folder / "plan.json"


def scaling_row(kind: str, workers: int, rate: float, **more: Any) -> dict[str, Any]:
    spread = {"samples_per_s": {"min": rate, "max": rate, "values": [rate]}}
    facts = {"name": f"train-{kind}-{workers}", "stage": "train", "kind": kind, "strategy": "auto", "workers": workers}
    return {**facts, "samples_per_s": rate, "spread": spread, "shares_cores": workers > 2, "repeats": 1, **more}


def scaling_file(file: Path, rows: list[dict[str, Any]], machine: dict[str, Any] = MACHINE) -> Path:
    values = {"format": 1, "scenario": "scaling", "environment": machine, "rows": rows, "notes": [], "command": "tenor"}
    file.write_text(json.dumps(values), "utf-8")
    return file


def test_a_plan_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    text = tenor.report(plan_file(tmp_path, under="1h")).read_text("utf-8")
    for words in ("Plan for 2 epochs over 64,000 reviews", "Time and money", "Steps and accuracy", "Assumptions"):
        assert words in text
    assert "2.00 ms + 4.00 µs per padded token, fitted to 1,000 steps of run" in text
    assert "<code>tenor train DATA --out RUN --workers 2 --max-seconds 60</code>" in text and "`tenor" not in text
    assert "The most useful next experiment" in text and "9 of 10 cases" in text
    assert "1 × c5.large" in text and "gradient noise scale in samples" in text


def test_both_tables_name_the_machines_if_there_are_several_kinds(tmp_path: Path) -> None:
    for kinds, count in (("c5.large", 1), ("c5.large,c5.xlarge", 2)):
        file = plan_file(tmp_path, workers="4", machine=kinds)
        steps = tenor.report(file).read_text("utf-8").partition("Steps and accuracy")[2].partition("</table>")[0]
        assert steps.count("c5.") == (0 if count == 1 else 2)
        assert ("2 × c5.large" in steps and "1 × c5.xlarge" in steps) == (count == 2)


def test_the_plots_have_the_intervals_of_the_rows(tmp_path: Path) -> None:
    rows = json.loads(plan_file(tmp_path).read_text("utf-8"))["rows"]
    plot = time_by_workers(rows)
    assert plot is not None
    lines = [line.split(",") for line in plot.csv.splitlines()]
    efficiencies = ["efficiency", "efficiency low", "efficiency high"]
    assert lines[0] == ["machine", "workers", "seconds", "low", "high", *efficiencies, "extrapolated"]
    assert [float(line[5]) for line in lines[1:]] == pytest.approx([row["efficiency"] for row in rows])
    assert [float(line[2]) for line in lines[1:]] == pytest.approx([row["seconds"] for row in rows])
    assert [line[-1] for line in lines[1:]] == ["False", "False", "False", "True", "True"]
    parts = parts_by_workers(rows)
    assert parts is not None and "compute seconds" in parts.csv.splitlines()[0]
    assert time_by_workers([]) is None and parts_by_workers([]) is None and parts_by_workers([{"workers": 1}]) is None


def test_a_table_of_runs_has_cents_and_no_intervals(tmp_path: Path) -> None:
    result = plan_runs(COURSE, PlanSettings(), ())
    (tmp_path / "plan.json").write_text(strict_json(result.as_dict()), "utf-8")
    text = tenor.report(tmp_path / "plan.json").read_text("utf-8")
    assert "$2.47" in text and "Cheapest: 1 × p2.xlarge" in text and "Steps and accuracy" not in text


def test_tables_and_plots_of_each_kind_of_scaling(tmp_path: Path) -> None:
    rows = [scaling_row("base", 1, 100.0), scaling_row("strong", 2, 150.0), scaling_row("weak", 4, 300.0)]
    text = tenor.report(scaling_file(tmp_path / "a.json", rows)).read_text("utf-8")
    assert "train, strong scaling: the same work for all workers together" in text
    assert "more processes than cores: not scaling" in text
    strong, weak = stage_scaling(rows, 2.0)
    assert strong.title.startswith("Train, strong") and "1.50× the first, 75% of ideal" in strong.caption
    assert "not scaling" in weak.caption


def test_results_of_two_networks_stay_apart(tmp_path: Path) -> None:
    files = [
        scaling_file(
            tmp_path / f"{network}.json",
            [scaling_row(kind, n, rate * n, network=network) for kind, n in (("base", 1), ("strong", 2))],
        )
        for network, rate in (("1gbit,1ms", 100.0), ("10gbit,1ms", 130.0))
    ]
    first, second = (parse_result(json.loads(file.read_text("utf-8")), file) for file in files)
    (joined,) = join_scaling([first, second])
    assert [row["speed_up"] for row in joined.rows] == [1.0, 2.0, 1.0, 2.0]
    assert [plot.title.rpartition("(")[2] for plot in stage_scaling(joined.rows, 2.0)] == [
        "network 1gbit,1ms)",
        "network 10gbit,1ms)",
    ]


def test_cells_with_units_sort_by_the_number_behind_them(tmp_path: Path) -> None:
    file = plan_file(tmp_path, workers="1,2")
    first = json.loads(file.read_text("utf-8"))["rows"][0]
    text = tenor.report(file).read_text("utf-8")
    for name in ("seconds", "dollars", "efficiency", "step_seconds", "accuracy"):
        assert f'data-value="{first[name]!r}"' in text, name
    rows = [[None, "1,234", "0.96–1.02", "+1.20 (−0.30 to 2.70)", "− 5", "± 5%", "12.5 %", "1.2.3", "2026-01-02", "a"]]
    cells = page.table(["", *"123456789"], rows).split("<td")[1:]
    found = [float(value[1]) if (value := re.search('data-value="([^"]+)"', cell)) else None for cell in cells]
    assert found == [1234.0, 0.96, 1.2, None, 5.0, 12.5, None, None, None]


def test_results_of_one_machine_are_joined_and_others_refused(tmp_path: Path) -> None:
    first = scaling_file(tmp_path / "one.json", [scaling_row("base", 1, 100.0)])
    second = scaling_file(tmp_path / "two.json", [scaling_row("base", 2, 180.0)])
    text = tenor.report([first, second], tmp_path / "both.html").read_text("utf-8")
    assert "1.80" in text and "0.90" in text
    other = {"machine": {**MACHINE["machine"], "processor": "Abacus"}}
    third = scaling_file(tmp_path / "three.json", [scaling_row("base", 4, 9.0)], other)
    with pytest.raises(UsageError, match=r"three\.json.*another machine \(Abacus"):
        tenor.report([first, third], tmp_path / "mixed.html")
    assert not (tmp_path / "mixed.html").exists()
    for name, odd in (("none", {}), ("text", {"machine": "fast"}), ("empty", {"machine": {}})):
        unknown = scaling_file(tmp_path / f"{name}.json", [scaling_row("base", 4, 9.0)], odd)
        again = scaling_file(tmp_path / f"{name}-again.json", [scaling_row("base", 8, 9.0)], odd)
        with pytest.raises(UsageError, match="does not say on which machine"):
            tenor.report([unknown, again], tmp_path / "mixed.html")
    old = parse_result({"scenario": "scaling", "rows": [{"name": "workers-1", "workers": 1, "samples_per_s": 5.0}]})
    assert join_scaling([old, old]) == [old, old]  # without stages, nothing is joined


@pytest.mark.parametrize("content", ["", "{", "[]", '{"scenario": "plan"}', '{"scenario": "plan", "rows": []}'])
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(UsageError, match=r"plan\.json"):
        tenor.report(tmp_path / "plan.json")


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    file = plan_file(tmp_path)
    file.write_text(file.read_text("utf-8").replace('"format": 1', '"format": 2', 1), "utf-8")
    with pytest.raises(UsageError, match="has format 2, but this version reads 1"):
        tenor.report(file)


MORE_ODD = [pytest.param(odd, marks=pytest.mark.soak) for odd in ([], -1, True)]
ODD = [None, "<script>alert(1)</script>", {"a": 1}, 1e308, *MORE_ODD]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_values_are_drawn_or_refused_but_never_run(tmp_path: Path, odd: Any) -> None:
    """One page with odd values everywhere around the rows, and one with a row for each odd figure."""
    values = json.loads(plan_file(tmp_path, workers="1").read_text("utf-8"))
    names = ("target", "source", "answers", "assumptions", "quantities", "experiment", "notes", "chosen")
    around = {**values, **dict.fromkeys(names, odd)}
    (row,) = values["rows"]
    within = {**values, "rows": [{**row, name: odd} for name in row]}
    for place, changed in enumerate((around, within)):
        (tmp_path / f"{place}.json").write_text(json.dumps(changed), "utf-8")
        assert "<script>alert" not in _report(tmp_path / f"{place}.json")


def _report(file: Path) -> str:
    try:
        return tenor.report(file).read_text("utf-8")
    except TenorError:
        return ""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    page = tenor.report(plan_file(tmp_path))
    document, requests = browse(page)
    assert requests == [] and "Where the numbers come from" in document
