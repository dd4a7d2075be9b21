"""Plots of results against figures computed by hand, and odd values in every place."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenor
from tenor.errors import UsageError
from tenor.reports.drawing.plot import Plot
from tenor.reports.plots.medians import medians
from tenor.reports.plots.money import Offer, dollars_against_time, pareto, planned_accuracy
from tenor.reports.plots.scaling.convergence import convergence, thresholds
from tenor.reports.plots.scaling.overall import scaling, scaling_lines
from tenor.reports.plots.strategies import by_workers
from tenor.reports.registry import DRAWINGS, draw_result
from tenor.reports.report import render
from tenor.reports.result_file import parse_result, read_result
from tenor.reports.settings import ReportSettings

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def table(plot: Plot | None) -> list[dict[str, str]]:
    assert plot is not None
    return list(csv.DictReader(io.StringIO(plot.csv)))


def row(workers: int, rate: float, *spread: float, **facts: Any) -> dict[str, Any]:
    ends = {"min": min(spread), "max": max(spread)} if spread else None
    return {"workers": workers, "samples_per_s": rate, **({"spread": {"samples_per_s": ends}} if ends else {}), **facts}


def test_speed_up_efficiency_and_spread_by_hand() -> None:
    (plot,) = scaling([row(4, 300.0, 280.0, 330.0), row(1, 100.0, 90.0, 105.0), row(2, 190.0)], cores=2)
    found = table(plot)
    assert [line["workers"] for line in found] == ["1.0", "2.0", "4.0"]
    assert [line["speed-up"] for line in found] == ["1.0", "1.9", ""]  # workers that share cores show no speed-up
    assert [line["efficiency"] for line in found] == ["1.0", "0.95", ""]
    assert [(float(line["min"]), float(line["max"])) for line in found] == [(90, 105), (190, 190), (280, 330)]
    assert [line["more workers than cores"] for line in found] == ["False", "False", "True"]
    assert "with 4 workers on 2 cores, workers share cores, so this is not scaling" in plot.caption
    assert "3.00× the first" not in plot.caption and "more workers than cores" in plot.svg
    alone = scaling([row(1, 10.0), row(2, 19.0)], cores=2)[0]
    assert "not scaling" not in alone.caption and "more workers than cores" not in alone.svg


def test_a_row_says_itself_that_its_workers_share_cores_and_may_be_the_only_one() -> None:
    (plot,) = scaling([row(1, 100.0), row(2, 150.0, shares_cores=True)], cores=2)  # with a server, 3 processes
    assert [line["more workers than cores"] for line in table(plot)] == ["False", "True"]
    assert "150 with 2." in plot.caption
    (only,) = scaling([row(4, 100.0), row(8, 90.0)], cores=2)
    assert [line["speed-up"] for line in table(only)] == ["", ""] and "with 4, 8 workers" in only.caption


def test_speed_ups_of_strategies_and_ways_to_a_threshold_tell_shared_cores_apart() -> None:
    facts = [("local-sgd", 2, 1.5), ("local-sgd", 8, 0.3), ("original", 8, 5.0)]
    rows = [{"strategy": s, "workers": n, "speed_up": up, "test_accuracy": 0.9} for s, n, up in facts]
    plot = by_workers(rows, cores=2.0)
    found = {(line["strategy"], line["workers"]): line["more workers than cores"] for line in table(plot)}
    assert found == {("local-sgd", "2.0"): "False", ("local-sgd", "8.0"): "True", ("original", "8.0"): "False"}
    assert plot is not None and "Hollow: more workers than cores (2)" in plot.caption
    (way,) = thresholds([{"workers": n, "seconds_to_loss_0.1": 60.0 / n, "shares_cores": n > 2} for n in (1, 2, 4)])
    assert "Hollow" in way.caption and [line["more workers than cores"] for line in table(way)][-1] == "True"


def test_a_speed_up_that_was_measured_turn_by_turn_is_drawn_as_it_is() -> None:
    two = row(2, 190.0, 180.0, 200.0, speed_up=1.6)
    two["spread"]["speed_up"] = {"min": 1.5, "max": 1.7}
    (plot,) = scaling([row(1, 100.0), two])
    assert "190 with 2 (1.60× the first, 80% of ideal)" in plot.caption
    assert [float(line["speed-up"]) for line in table(plot)] == pytest.approx([1.0, 1.6])
    assert scaling_lines([two], "samples_per_s")[""][0].gain == (1.6, 1.5, 1.7)


def test_rows_with_other_words_form_other_lines_and_units_other_plots() -> None:
    rows = [row(n, 10.0 * n, scaling=kind, stage="train") for n in (1, 2) for kind in ("strong", "weak")]
    assert list(scaling_lines(rows, "samples_per_s")) == ["strong train", "weak train"]
    rows += [{"workers": n, "mb_per_s": 5.0 * n, "stage": "prepare"} for n in (1, 2)]
    first, second = scaling(rows)
    assert "(samples/s)" in first.title and "(MB/s)" in second.title
    assert {line["line"] for line in table(second)} == {"prepare"}
    assert scaling([row(1, 10.0) | {"tokens_per_s": 99.0}])[0].title.endswith("(samples/s)")


def test_convergence_of_one_strategy_has_both_axes_and_of_several_a_panel_each() -> None:
    def curve(workers: int, strategy: str | None = None) -> dict[str, Any]:
        seconds = [10.0 / workers, 20.0 / workers]
        facts = {"strategy": strategy} if strategy else {}
        return {"workers": workers, "curve": {"accuracy": [0.5, 0.8 - 0.01 * workers], "seconds": seconds}, **facts}

    (plot,) = convergence([curve(1), curve(2)])
    assert "by workers: 0.790 with 1, 0.780 with 2." in plot.caption
    assert {(line["axis"], line["workers"], line["x"]) for line in table(plot)} >= {("seconds", "2.0", "5.0")}
    over_epochs, over_seconds = convergence(
        [curve(1, "single"), curve(2, "local-sgd"), curve(4, "local-sgd"), curve(2, "async")]
    )
    assert {line["panel"] for line in table(over_epochs)} == {"local-sgd", "async"}
    assert over_seconds.title.endswith("over seconds")
    assert convergence([curve(2)]) == convergence([]) == []


def test_the_way_to_a_threshold_by_workers() -> None:
    rows = [{"workers": n, "seconds_to_loss_0.13": 60.0 / n, "epochs_to_loss_0.13": 3.0} for n in (2, 1)]
    seconds, epochs = thresholds(rows)
    assert seconds.title == "Seconds until loss 0.13" and epochs.title == "Epochs until loss 0.13"
    assert "30 with 2 workers, 60 with 1 worker" in seconds.caption


def test_medians_show_the_range_and_the_reference() -> None:
    rows = [{"name": "a", "x": 5.0, "spread": {"x": {"min": 4.0, "max": 9.0}}}, {"name": "wc", "x": 2.0}, {"name": "b"}]
    plot = medians(rows, "x", "apples", "wc", "the reference")
    assert plot is not None and "the reference" in plot.svg
    assert [list(line.values()) for line in table(plot)] == [["a", "5.0", "4.0", "9.0"], ["wc", "2.0", "2.0", "2.0"]]
    assert medians(rows, "y", "pears") is None


OFFERS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(OFFERS, st.booleans())
def test_the_front_is_what_no_other_offer_beats(pairs: list[tuple[int, int]], larger_is_better: bool) -> None:
    offers = [Offer(str(i), float(d), float(v), float(v), float(v)) for i, (d, v) in enumerate(pairs)]
    sign = -1 if larger_is_better else 1

    def beats(one: Offer, other: Offer) -> bool:
        worse = one.dollars > other.dollars or sign * one.value > sign * other.value
        return not worse and (one.dollars, one.value) != (other.dollars, other.value)

    brute = {(o.dollars, o.value) for o in offers if not any(beats(other, o) for other in offers)}
    front = [(o.dollars, o.value) for o in pareto(offers, larger_is_better=larger_is_better)]
    assert set(front) == brute and front == sorted(front)


PLAN = [
    {"workers": n, "machine": "m", "seconds": 100.0 / n, "seconds_low": 90.0 / n, "seconds_high": 130.0 / n,
     "dollars": 0.5 + 0.1 * n, "accuracy": 0.9, "accuracy_low": 0.88, "extrapolated": n > 2}
    for n in (1, 2, 4)
]  # fmt: skip


def test_plans_have_intervals_the_front_and_extrapolated_points() -> None:
    found = table(dollars_against_time(PLAN))
    assert (found[0]["low"], found[0]["seconds"], found[0]["high"]) == ("90.0", "100.0", "130.0")
    assert [line["Pareto front"] for line in found] == ["True"] * 3
    assert [line["extrapolated"] for line in found] == ["False", "False", "True"]
    accuracy = planned_accuracy(PLAN)
    assert accuracy is not None and "Hollow: extrapolated" in accuracy.caption
    assert [line["Pareto front"] for line in table(accuracy)] == ["True", "False", "False"]
    assert dollars_against_time([{"workers": 1}]) is None


def test_a_price_adds_accuracy_against_dollars() -> None:
    rows = [{"name": f"n{n}", "workers": n, "seconds": 3600.0 / n, "test_accuracy": 0.8 + 0.01 * n} for n in (1, 2)]
    result = parse_result({"scenario": "strategies", "rows": rows})
    without = [plot for plot in draw_result(result, ReportSettings()) if plot]
    (plot,) = [plot for plot in draw_result(result, ReportSettings(price=0.9)) if plot and plot not in without]
    assert plot.title == "Accuracy against dollars"
    assert [float(line["dollars"]) for line in table(plot)] == pytest.approx([0.9, 0.9])


def test_a_price_is_used_for_a_validation_accuracy_too_and_refused_without_use(tmp_path: Path) -> None:
    until = {"name": "until", "workers": 2, "seconds": 3600.0, "valid_accuracy": 0.9}
    (plot,) = [
        p for p in draw_result(parse_result({"scenario": "scaling", "rows": [until]}), ReportSettings(price=2.0)) if p
    ]
    assert [float(line["dollars"]) for line in table(plot)] == [4.0]
    for scenario, rows in (("scaling", [row(1, 10.0, name="a")]), ("plan", [{**until, "test_accuracy": 0.9}])):
        file = tmp_path / f"{scenario}.json"
        file.write_text(json.dumps({"format": 1, "scenario": scenario, "rows": rows}))
        with pytest.raises(UsageError, match="price 2 has no effect"):
            tenor.report(file, price=2.0)


def test_the_page_of_the_service_shows_its_rate() -> None:
    rows = [{"name": "service", "requests_per_s": 1000.0, "seconds": 15.0}]
    (plot,) = [p for p in draw_result(parse_result({"scenario": "serve", "rows": rows}), ReportSettings()) if p]
    assert plot.title == "Requests per second by row"


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.json")), ids=lambda file: file.stem)
def test_every_result_of_the_project_is_drawn(file: Path, tmp_path: Path) -> None:
    text = tenor.report(file, tmp_path / "page.html").read_text("utf-8")
    result = json.loads(file.read_text("utf-8"))
    assert text.count("<svg") >= 1 and f"tenor bench {result['scenario']}" in text
    names = [str(row["name"]) for row in result["rows"]]
    if result["scenario"] == "scaling":  # its tables have a row for each number of workers
        names = [
            f"{row['stage']}, {row['kind']} scaling" for row in result["rows"] if row["kind"] in ("strong", "weak")
        ]
    assert names and all(name in text for name in names)


def test_every_scenario_has_a_plot_even_a_new_one() -> None:
    rows = [{"name": "a", "workers": 1, "words_per_s": 5.0, "seconds": 2.0}]
    (plot,) = [p for p in draw_result(parse_result({"scenario": "brand-new", "rows": rows}), ReportSettings()) if p]
    assert plot.title == "Words per second by row"
    assert {"scaling", "strategies", "prepare", "plan"} <= set(DRAWINGS)


ODD: list[Any] = [1e308, -1.0, 0, "x", None, True, [], {}, [None], "<b>$x^2$", ["\u202e"], {"min": "x"}]


@pytest.mark.parametrize("scenario", [*DRAWINGS, "busy", "<b>"])
@pytest.mark.parametrize("place", range(3))
def test_odd_values_anywhere(scenario: str, place: int) -> None:
    keys = ["name", "workers", "strategy", "samples_per_s", "mb_per_s", "seconds", "dollars", "accuracy", "speed_up"]
    keys += ["test_accuracy", "repeats", "spread", "curve", "seconds_low", "extrapolated", "epochs_to_x"]
    good = {"name": "a", "workers": 2, "samples_per_s": 5.0, "seconds": 3.0, "dollars": 1.0, "test_accuracy": 0.5}
    good |= {"curve": {"accuracy": [0.5], "seconds": [1.0], "bytes": [0]}, "spread": {"seconds": {"min": 1.0}}}
    rows = [good]
    for odd in ODD[place::3]:
        rows += [{**good, key: odd} for key in keys]
        rows += [{**good, "spread": {"seconds": odd}, "curve": {"accuracy": odd, "seconds": [odd], "bytes": odd}}]
    others = {"environment": ODD[place], "notes": ODD[place], "command": ODD[place]}
    text = render([parse_result({"scenario": scenario, "rows": rows, **others})], ReportSettings(price=1.0))
    assert "<b>" not in text and text.count("<script") == 1


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text('{"scenario": "x", "rows": [{"name": "a"}]}')
    (tmp_path / "link.json").symlink_to("real.json")
    assert read_result(tmp_path / "link.json").scenario == "x"
    (tmp_path / "loop.json").symlink_to("loop.json")
    with pytest.raises(UsageError, match="is a symbolic link"):
        read_result(tmp_path / "loop.json")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"format": 2, "scenario": "scaling", "rows": [{}]}, "has format 2, but this version reads 1"),
        ({"format": "x", "scenario": "scaling", "rows": [{}]}, "has format 'x'"),
        ({"format": True, "scenario": "scaling", "rows": [{}]}, "has format True"),
        ({"scenario": "scaling", "rows": []}, "without rows"),
        ({"rows": [{}]}, "is not the result"),
        ({"scenario": "scaling", "rows": {}}, "is not the result"),
        ([], "is not JSON"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, values: Any, words: str) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(values))
    with pytest.raises(UsageError, match=words) as caught:
        read_result(file)
    assert str(caught.value).startswith(str(file)) and "\n" not in str(caught.value)
