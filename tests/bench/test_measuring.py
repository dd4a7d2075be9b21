"""The order of runs, the figures in the result, and its JSON form."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.bench.measuring import Contender, measure, spread, table, turns
from tenor.bench.scenarios import bench
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError


def recorder(log: list[str], name: str, values: list[float]) -> Contender:
    feed = iter(values)

    def run() -> dict[str, float]:
        log.append(name)
        return {"rate": next(feed)}

    return Contender(name, run, {"workers": len(name)})


def test_contenders_take_turns_and_warm_ups_do_not_count() -> None:
    log: list[str] = []
    result = measure("fake", [recorder(log, "a", [99, 1, 5, 3]), recorder(log, "bb", [99, 2, 2, 8])], 3, 1)
    assert log == ["a", "bb", "bb", "a", "a", "bb", "bb", "a"]
    rows = {row["name"]: row for row in result.rows}
    assert rows["a"]["rate"] == 3 and rows["a"]["spread"]["rate"]["values"] == [1, 5, 3]
    assert rows["bb"]["rate"] == 2 and rows["bb"]["workers"] == 2 and rows["bb"]["repeats"] == 3
    assert rows["a"]["seconds"] >= 0


def test_every_result_has_the_same_json_form() -> None:
    result = measure("fake", [Contender("only", lambda: {"seconds": 2.0})], repeats=1, warmups=0).as_dict()
    assert json.loads(json.dumps(result)) == result
    assert list(result) == ["format", "scenario", "command", "environment", "rows", "notes"]
    assert {"date", "machine", "versions", "commit"} <= set(result["environment"])
    flat = {"min": 2.0, "q1": 2.0, "q3": 2.0, "max": 2.0, "values": [2.0]}
    assert result["rows"] == [{"name": "only", "seconds": 2.0, "repeats": 1, "spread": {"seconds": flat}}]


@given(st.integers(1, 7), st.integers(1, 6))
def test_every_round_has_each_contender_once(num_contenders: int, rounds: int) -> None:
    order = turns(num_contenders, rounds)
    for start in range(0, len(order), num_contenders):
        assert sorted(order[start : start + num_contenders]) == list(range(num_contenders))
    firsts = Counter(order[::num_contenders])
    assert max(firsts.values()) - min(firsts.get(i, 0) for i in range(num_contenders)) <= 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_spread_matches_numpy(values: list[float]) -> None:
    got = spread(values)
    expected = np.quantile(values, [0, 0.25, 0.75, 1])
    assert [got["min"], got["q1"], got["q3"], got["max"]] == pytest.approx(expected.tolist(), abs=1e-6)


def test_the_table_has_a_range_beside_each_median() -> None:
    result = measure("fake", [recorder([], "a", [1, 5, 3])], repeats=3, warmups=0)
    head, rows = table(result)
    assert head == ["name", "workers", "seconds", "min–max", "rate", "min–max"]
    assert rows[0][:2] == ["a", 1] and rows[0][4:] == [3, "1–5"]


def test_the_error_of_a_contender_is_raised() -> None:
    def run() -> dict[str, float]:
        raise RuntimeError("broken stage")

    with pytest.raises(RuntimeError, match="broken stage"):
        measure("fake", [Contender("a", run)])


@pytest.mark.parametrize(("repeats", "warmups", "contenders"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_nothing_to_measure_is_refused(repeats: int, warmups: int, contenders: int) -> None:
    with pytest.raises(UsageError, match="nothing to measure"):
        measure("fake", [Contender("a", dict)] * contenders, repeats, warmups)


@pytest.mark.parametrize("wrong", [{"repeats": 0}, {"warmups": -1}, {"megabytes": 0}, {"epochs": 0}])
def test_wrong_settings_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} cannot be"):
        BenchSettings(**wrong)


def test_options_of_another_scenario_are_refused() -> None:
    with pytest.raises(UsageError, match="megabytes 7 has no effect with bench scaling") as refused:
        bench("scaling", BenchSettings(megabytes=7))
    assert "use bench predict or prepare" in str(refused.value.remedy)
    with pytest.raises(UsageError, match="workers 4 has no effect with bench balance"):
        bench("balance", BenchSettings(workers="4"))
