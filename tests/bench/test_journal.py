"""The journal of a measurement: it continues after finished runs, and only where it began."""

import json
from pathlib import Path
from typing import Any

import pytest

from tenor.bench.journal import FileJournal
from tenor.bench.measuring import Contender, measure
from tenor.errors import UsageError

SUBJECT = {"scenario": "scaling", "workers": "1,2"}


def contenders(log: list[str], stop_after: int = 99) -> list[Contender]:
    def make(name: str) -> Contender:
        def run() -> dict[str, float]:
            if len(log) == stop_after:
                raise KeyboardInterrupt
            log.append(name)
            return {"rate": float(len(log)), "way": float("inf")}

        return Contender(name, run)

    return [make("a"), make("b"), make("c")]


def test_a_stopped_measurement_continues_and_gives_the_same_rows(tmp_path: Path) -> None:
    file = tmp_path / "partial"
    first: list[str] = []
    rest: list[str] = []
    whole: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        measure("fake", contenders(first, stop_after=5), 3, 1, journal=FileJournal(file, SUBJECT))
    result = measure("fake", contenders(rest), 3, 1, journal=FileJournal(file, SUBJECT))
    expected = measure("fake", contenders(whole), 3, 1)
    assert first + rest == whole
    assert [row["name"] for row in result.rows] == [row["name"] for row in expected.rows]
    assert result.rows[1]["spread"]["rate"]["values"][0] == 4.0  # its first measured run was in the first session
    assert all(row["repeats"] == 3 and row["way"] == float("inf") for row in result.rows)
    again: list[str] = []
    measure("fake", contenders(again), 3, 1, journal=FileJournal(file, SUBJECT))
    assert again == []


def test_a_part_of_a_line_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "partial"
    journal = FileJournal(file, SUBJECT)
    journal.add("a", {"rate": 1.0})
    with file.open("a") as stream:
        stream.write('{"name": "b", "fig')
    found = FileJournal(file, SUBJECT)
    assert found.count("a") == 1 and found.past(0, "a") == {"rate": 1.0} and found.past(1, "b") is None
    found.add("b", {"rate": 2.0})
    assert [json.loads(line)["name"] for line in file.read_text("utf-8").splitlines()[1:]] == ["a", "b"]


@pytest.mark.parametrize("curve", [3, {"accuracy": 1.0}, {"accuracy": ["x"]}, [1.0]])
def test_a_curve_is_kept_with_its_run_and_a_damaged_one_refused(tmp_path: Path, curve: Any) -> None:
    file = tmp_path / "partial"
    journal = FileJournal(file, SUBJECT)
    journal.curves["a"] = {"accuracy": [0.5, 0.75], "seconds": [1.0, 2.0]}
    journal.add("a", {"rate": 1.0})
    journal.add("b", {"rate": 1.0})
    assert FileJournal(file, SUBJECT).curves == journal.curves
    with file.open("a") as stream:
        stream.write(json.dumps({"name": "a", "figures": {}, "curve": curve}) + "\n")
    with pytest.raises(UsageError, match="not the journal"):
        FileJournal(file, SUBJECT)


def begin(file: Path, edit: Any) -> None:
    FileJournal(file, SUBJECT).add("a", {"rate": 1.0})
    head, *rest = file.read_text("utf-8").splitlines()
    values = json.loads(head)
    edit(values)
    file.write_text("\n".join([json.dumps(values), *rest]) + "\n", "utf-8")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda head: head.update(format=9), "has format 9"),
        (lambda head: head["subject"].update(workers="1,4"), "workers '1,4', not '1,2'"),
        (lambda head: head["subject"].update(extra=1), "extra 1, not None"),
        (lambda head: head["environment"]["machine"].update(processor="Abacus"), "another machine .Abacus"),
        (lambda head: head["environment"]["machine"].update(cores=96), "another machine .*96 cores"),
        (lambda head: head["environment"]["versions"].update(torch="0.1"), "other versions"),
        (lambda head: head.update(environment=3), "not the journal"),
        (lambda head: head.update(subject=[]), "not the journal"),
    ],
)
def test_another_measurement_machine_or_version_is_refused(tmp_path: Path, edit: Any, message: str) -> None:
    file = tmp_path / "partial"
    begin(file, edit)
    before = file.read_bytes()
    with pytest.raises(UsageError, match=message) as error:
        FileJournal(file, SUBJECT)
    assert error.value.remedy and file.read_bytes() == before


@pytest.mark.parametrize("line", ["x", "[]", '{"name": 3, "figures": {}}', '{"name": "a", "figures": {"rate": "x"}}'])
def test_a_damaged_line_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "partial"
    FileJournal(file, SUBJECT)
    with file.open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(UsageError, match="not the journal of a measurement"):
        FileJournal(file, SUBJECT)


def test_runs_in_another_order_are_refused(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "partial", SUBJECT)
    journal.add("b", {"rate": 1.0})
    with pytest.raises(UsageError, match="in line 2"):
        journal.past(0, "a")
