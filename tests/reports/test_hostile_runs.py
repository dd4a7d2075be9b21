"""A report about an untrusted folder is limited in time and size, and says what it leaves out."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from helpers.command import call_tenor
from helpers.runs import write_run

import tenor
from tenor.errors import RunError, UsageError
from tenor.reports.result_file import read_result
from tenor.reports.runs import log as run_log
from tenor.reports.runs.data import read_run
from tenor.store.trusted import CONTAINERS


def report(run: Path, scaling: list[Any] | None = None) -> str:
    sources = [run]
    if scaling is not None:
        file = run.with_suffix(".json")
        file.write_text(json.dumps({"scenario": "scaling", "rows": scaling}))
        sources.append(file)
    return tenor.report(sources, run / "report.html").read_text("utf-8")


def write_events(run: Path, events: list[Any]) -> None:
    (run / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def change(run: Path, file: str, **values: Any) -> None:
    (run / file).write_text(json.dumps({**json.loads((run / file).read_text("utf-8")), **values}), "utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", epochs=2, steps=4)


def step(number: int, workers: int) -> dict[str, Any]:
    measures = {"shares": [1] * workers, "compute_seconds": [0.5] * workers, "wait_seconds": [0.25] * workers}
    return {"event": "step", "step": number, "seconds": float(number), "loss": 0.5, **measures}


def test_only_some_of_thousands_of_workers_are_drawn(run: Path) -> None:
    write_events(run, [step(number, 20_000) for number in range(1, 4)])
    began = time.monotonic()
    text = report(run)
    assert time.monotonic() - began < 60  # without the limit it takes minutes
    assert "first 32 of 20,000 workers" in text and len(text) < 3e6


def test_only_some_of_hundreds_of_classes_are_drawn(run: Path) -> None:
    names = [f"class {number}" for number in range(300)]
    counts = [[5 if row == column else 1 for column in range(300)] for row in range(300)]
    per_class = {name: {"precision": 1.0, "recall": 1.0, "f1": 1.0, "rows": 304} for name in names}
    change(run, "config.json", classes=names)
    change(run, "result.json", test={"accuracy": 0.5, "confusion": counts, "per_class": per_class})
    text = report(run)
    assert "first 20 of 300 classes" in text and "200 more rows are not shown" in text
    assert "Of 304 class 0 reviews, 5 (1.6%) were classified correctly" in text  # the share counts all predictions


def test_lines_that_cannot_be_read_are_skipped_and_counted(run: Path) -> None:
    whole = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(b'\xff\xfe\n{"event"\n[1]\n' + b"[" * 99_999 + b"\n" + whole + b'{"cut')
    text = report(run)
    assert "4 lines of metrics.jsonl could not be read" in text and "Learning curve over epochs" in text


def test_a_long_log_is_thinned_without_changing_its_sums(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "MOST_EVENTS", 10)
    write_events(run, [step(number, 2) for number in range(1, 101)])
    found = read_run(run).steps
    assert 5 <= len(found) <= 10 and found[-1]["step"] == 100
    assert sum(event["compute_seconds"][1] for event in found) == pytest.approx(50.0)
    assert sum(event["wait_seconds"][0] for event in found) == pytest.approx(25.0)


def test_a_log_is_read_up_to_a_size(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "MOST_BYTES", 2000)
    monkeypatch.setattr(run_log, "LINE_BYTES", 300)
    write_events(run, [step(1, 2), {"event": "step", "junk": "x" * 1000}, *(step(n, 2) for n in range(2, 50))])
    read = read_run(run)
    assert [event["step"] for event in read.steps[:2]] == [1, 2] and len(read.steps) < 20
    assert any("1 line" in note for note in read.notes) and any("2,000 bytes" in note for note in read.notes)


@pytest.mark.parametrize("value", ["{}", "[]", "0.5"])
def test_a_log_takes_no_more_memory_than_a_limit(run: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Three bytes of a file can become a hundred bytes in memory. Limits and lines are small, to save time."""
    monkeypatch.setattr(run_log, "KEPT_BYTES", run_log.KEPT_BYTES // 32)
    line = '{"event": "step", "shares": [' + f"{value}," * (1 << 12) + "0]}\n"
    (run / "metrics.jsonl").write_text(line * 60)
    tracemalloc.start()
    try:
        assert len(read_run(run).steps) > 1
        assert tracemalloc.get_traced_memory()[1] < (250 << 20) // 32
    finally:
        tracemalloc.stop()


def test_a_file_with_very_many_objects_is_refused(run: Path) -> None:
    (run / "environment.json").write_text('{"a": [' + "{}," * CONTAINERS + "0]}")
    with pytest.raises(RunError, match=r"environment\.json.*too many lists and objects"):
        report(run)


HUGE = 10**400
ODD: list[Any] = [HUGE, -HUGE, 1e308, -1e308, "x", None, True, [], {}, [HUGE], float("nan"), "\ud800", "<b>"]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_values_anywhere(run: Path, odd: Any) -> None:
    lines = [{**step(number, 2), "loss": odd, "seconds": odd, "shares": odd} for number in (1, 2)]
    lines += [{**step(3, 2), "compute_seconds": [odd, 1.0], "step": odd}]
    lines += [{"event": "epoch", "epoch": odd, "seconds": 1.0, "train_loss": odd, "valid": odd}]
    epoch = {"event": "epoch", "train_loss": odd, "valid": {"accuracy": odd}}
    lines += [{**epoch, "epoch": number, "seconds": number} for number in (1, 2)]
    lines += [{"event": odd}]
    write_events(run, lines)
    test = {"accuracy": odd, "rows": odd, "confusion": [[odd, 1], [1, 1]], "majority_baseline": {"class": odd}}
    per_class = {"a": {"precision": odd, "rows": odd}, "b": odd}
    change(run, "result.json", test={**test, "per_class": per_class}, workers=odd, seconds=odd, weights_sha256=odd)
    change(run, "environment.json", date=odd, machine=odd)
    scaling = [{"workers": odd, "samples_per_s": 1.0}, {"workers": 1, "samples_per_s": odd}]
    assert "<b>" not in report(run)
    if odd is None or odd in (True, "x", [], {}, "<b>", 1e308):  # other values are not JSON that is accepted
        assert "<b>" not in report(run, scaling)


def test_odd_classes_and_settings(run: Path) -> None:
    names = ["\udcff \x00\n" + "n" * 500, "<script>$x$</script>"]
    settings = {f"key {number}": "v" * 5000 for number in range(1000)}
    change(run, "config.json", classes=names, model={"a": {"b": 1}}, settings=settings)
    text = report(run)
    assert text.count("<script") == 1  # the page's own
    assert "more rows are not shown" in text
    assert "model.a.b" in text
    assert len(text) < 2e6


def test_deep_objects_are_refused(run: Path) -> None:
    (run / "environment.json").write_text('{"a":' * 500 + "1" + "}" * 500)
    with pytest.raises(RunError, match=r"environment\.json.*nested"):
        report(run)


@pytest.mark.parametrize("name", ["config.json", "environment.json", "result.json", "metrics.jsonl"])
def test_links_are_refused(run: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).symlink_to("/dev/zero")
    with pytest.raises(RunError, match=f"{name}: is a symbolic link"):
        report(run)


def test_a_newer_format_is_refused(run: Path) -> None:
    change(run, "config.json", format=3)
    with pytest.raises(RunError, match="newer version"):
        report(run)


def test_the_folder_of_the_page_is_made(run: Path, tmp_path: Path) -> None:
    call_tenor("report", run, "--out", tmp_path / "no" / "such" / "r.html").ok()
    assert (tmp_path / "no" / "such" / "r.html").is_file()
    with pytest.raises(UsageError, match="is a folder"):
        tenor.report(run, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "\xff",
        '{"scenario": "scaling", "rows": 7}',
        '{"scenario": "scaling", "rows": [[1], 2, "ab"]}',
        '{"scenario": ["scaling"], "rows": []}',
    ],
)
def test_a_file_that_is_not_a_benchmark_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text, "latin-1")
    with pytest.raises(UsageError):
        read_result(tmp_path / "b.json")
    (tmp_path / "b.json").unlink()
    (tmp_path / "b.json").symlink_to("/dev/zero")
    with pytest.raises(UsageError):
        read_result(tmp_path / "b.json")


def test_only_some_rows_of_a_long_benchmark_are_drawn(run: Path) -> None:
    rows = [{"workers": count, "samples_per_s": 2.0 * count} for count in range(1, 5000)]
    assert "first 32 of 4,999 numbers of workers" in report(run, scaling=rows)
