"""Plans from a table of finished runs: the cost table to the cent, the cheapest, the fastest, and wrong tables."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tenor.errors import UsageError
from tenor.planning.answers import plan_runs
from tenor.planning.inputs.runs_table import TableRun, read_table
from tenor.planning.settings import PlanSettings
from tenor.planning.table_plan import plan_table

RUNS = Path(__file__).parent / "course_runs.csv"

# Computed by hand: machines × dollars per hour × seconds / 3600, rounded to cents, half a cent up.
BY_HAND = {
    ("p2.xlarge", 1): "2.25",  # 0.90 × 9000 / 3600 = 0.90 × 2.5
    ("p2.xlarge", 2): "2.47",  # 1.80 × 4935 / 3600 = 4935 / 2000 = 2.4675
    ("p2.xlarge", 4): "2.70",  # 3.60 × 2702 / 3600 = 2.702
    ("p2.xlarge", 8): "3.19",  # 7.20 × 1595 / 3600 = 3.190
    ("g3.4xlarge", 1): "2.31",  # 1.14 × 7310 / 3600 = 8333.4 / 3600 = 2.31483
    ("g3.4xlarge", 2): "2.52",  # 2.28 × 3981 / 3600 = 9076.68 / 3600 = 2.5213
    ("g3.4xlarge", 4): "2.74",  # 4.56 × 2166 / 3600 = 9876.96 / 3600 = 2.7436
    ("g3.16xlarge", 1): "2.58",  # 4.56 × 2038 / 3600 = 9293.28 / 3600 = 2.58147
    ("g3.16xlarge", 2): "3.01",  # 9.12 × 1187 / 3600 = 10825.44 / 3600 = 3.00707
}


def test_the_cost_table_to_the_cent() -> None:
    result = plan_runs(RUNS, PlanSettings(), ())
    assert {(row.machine, row.machines): f"{row.dollars.value:.2f}" for row in result.rows} == BY_HAND
    assert result.answers[0] == "Cheapest: 1 × p2.xlarge ($2.25, 2.5 h)."
    assert result.answers[1] == "Fastest: 2 × g3.16xlarge ($3.01, 19.8 min)."
    assert all(row.total.low == row.total.value == row.total.high for row in result.rows)


def test_the_front_and_the_efficiency_by_hand() -> None:
    rows = plan_runs(RUNS, PlanSettings(), ()).rows
    front = {(row.machine, row.machines) for row in rows if row.is_pareto}
    # By rising dollars, each is faster than all cheaper ones: 9000, 7310, 4935, 3981, 2038, 1187 seconds.
    assert front == {
        ("p2.xlarge", 1),
        ("g3.4xlarge", 1),
        ("p2.xlarge", 2),
        ("g3.4xlarge", 2),
        ("g3.16xlarge", 1),
        ("g3.16xlarge", 2),
    }
    found = {(row.machine, row.machines): row.efficiency.value for row in rows}
    assert found["p2.xlarge", 8] == pytest.approx(9000 / (8 * 1595)) and found["g3.16xlarge", 1] == 1.0


def test_half_a_cent_goes_up_and_money_is_not_rounded_in_binary() -> None:
    """2 × 0.90 × 2270 / 3600 is 1.135 exactly; as a binary float it is a little less and would round down."""
    (row,) = plan_table([TableRun("p2.xlarge", 2, 2270.0)], PlanSettings())
    assert row.dollars.value == 1.14 and round(2 * 0.90 * 2270 / 3600, 2) in (1.13, 1.14)
    (own,) = plan_table([TableRun("mine", 1, 3600.0, dollars_per_hour=Decimal("0.125"))], PlanSettings())
    assert own.dollars.value == 0.13


def test_other_counts_follow_amdahl_with_an_interval_and_a_mark() -> None:
    runs = [TableRun("p2.xlarge", n, 100.0 + 3200.0 / n) for n in (1, 2, 4)]
    rows = plan_table(runs, PlanSettings(), (4, 8, 32))
    predicted = {row.machines: row for row in rows if row.strategy != "measured"}
    assert set(predicted) == {8, 32}
    assert predicted[8].total.value == pytest.approx(500.0)
    assert predicted[8].total.low < 500.0 < predicted[8].total.high and predicted[8].extrapolated == ()
    assert predicted[32].extrapolated == ("32 machines, measured 4",)
    assert predicted[8].dollars.value == pytest.approx(8 * 0.90 * 500 / 3600, abs=0.005)
    assert plan_table(runs[:1], PlanSettings(), (8,))[0].strategy == "measured"


def test_an_accuracy_chooses_among_the_runs_that_reach_it(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    lines = ("p2.xlarge,1,3600,0.80", "p2.xlarge,2,2000,0.91", "p2.xlarge,4,1200,0.92", "p2.xlarge,8,600,")
    file.write_text("\n".join(["machine,count,seconds,accuracy", *lines]))

    def chosen(**options: Any) -> tuple[int | None, str]:
        result = plan_runs(file, PlanSettings(**options), ())
        return result.rows[result.chosen].machines if result.chosen is not None else None, result.answers[-1]

    found, words = chosen(accuracy=0.9, under="1h")
    assert found == 2 and "Of 2 runs with an accuracy of at least 0.9: the cheapest plan under 1" in words
    assert chosen(accuracy=0.92)[0] == 4
    assert chosen(accuracy=0.9, under="5m")[0] is None
    assert chosen(accuracy=0.95) == (None, "No run reaches the accuracy 0.95; the best one has 0.92.")


def test_json_and_optional_columns(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    file.write_text('{"runs": [{"machine": "m", "count": 2, "seconds": 60, "dollars_per_hour": 0.3, "accuracy": 0.9}]}')
    assert read_table(file) == [TableRun("m", 2, 60.0, "", Decimal("0.3"), 0.9)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'machine'"),
        ("machine,count\na,1", "no column 'seconds'"),
        ("machine,count,seconds,colour\na,1,2,red", "unknown column 'colour'"),
        ("machine,count,seconds\n", "has no runs"),
        ("machine,count,seconds\np2.xlarge,1,60\np2.xlarge,two,60", r"csv:3.*count is 'two'"),
        ("machine,count,seconds\np2.xlarge,0,60", "count is '0'"),
        ("machine,count,seconds\np2.xlarge,1.5,60", "count is '1.5'"),
        ("machine,count,seconds\np2.xlarge,1,-3", "seconds is '-3'"),
        ("machine,count,seconds\np2.xlarge,1,inf", "seconds is 'inf'"),
        ("machine,count,seconds\np2.xlarge,1,", "seconds is missing"),
        ("machine,count,seconds\n,1,60", "machine is missing"),
        ("machine,count,seconds,accuracy\np2.xlarge,1,60,2", "accuracy is '2'"),
    ],
)
def test_a_wrong_table_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_table(file)


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": 3}', '{"runs": [3]}', '{"runs": [{"count": [1]}]}'])
def test_wrong_json_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "runs.json"
    file.write_text(text)
    with pytest.raises(UsageError):
        read_table(file)


def test_a_machine_without_a_price_is_named(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("machine,count,seconds\nx9.huge,1,60\n")
    with pytest.raises(UsageError, match=r"no price is known for the machine 'x9\.huge'"):
        plan_runs(file, PlanSettings(), ())
