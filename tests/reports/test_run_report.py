"""The report shows the numbers of the run, survives damaged and hostile folders, and is self-contained."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from helpers.command import call_tenor
from helpers.runs import write_run

import tenor
from tenor.errors import RunError, UsageError
from tenor.reports.sections.run import measures
from tenor.training.runs.config import FORMAT

EVIL = '<script>alert("x")</script><img src=http://evil.invalid/>&$x^2$'


class Page(HTMLParser):
    """The tags, attributes and words of a document; fails on tags that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.words += data + " "


def report(*sources: Path) -> str:
    return tenor.report(sources, sources[0] / "report.html").read_text("utf-8")


def test_the_cost_of_a_run_and_the_distance_of_stars(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=1, steps=2, classes=("1", "2", "3", "4", "5"))
    result = json.loads((run / "result.json").read_text("utf-8"))
    words = Page(tenor.report(run, tmp_path / "page.html", price=3600.0).read_text("utf-8")).words
    assert f"${result['workers'] * result['seconds']:,.2f}" in words and "3600 dollars per worker and hour" in words
    assert "Mean absolute error" in words and f"{result['test']['mean_absolute_error']:.3f}" in words
    assert "mean_absolute_error" not in measures({"accuracy": 0.9, "mean_absolute_error": None})


def change(run: Path, file: str, **values: Any) -> None:
    path = run / file
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


def write_result(file: Path, rows: list[dict[str, Any]], scenario: str = "scaling") -> Path:
    file.write_text(json.dumps({"format": 1, "scenario": scenario, "environment": {}, "rows": rows, "notes": []}))
    return file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "reviews")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that no test changes, and its report."""
    run = write_run(tmp_path_factory.mktemp("drawn") / "reviews")
    return run, report(run)


def test_the_numbers_are_there(drawn: tuple[Path, str]) -> None:
    run, text = drawn
    test = json.loads((run / "result.json").read_text("utf-8"))["test"]
    words = " ".join(Page(text).words.split())
    for name in ("accuracy", "f1_macro", "f1_weighted", "auc"):
        assert f"{test[name]:.3f}" in words
        assert f"{test['majority_baseline'][name]:.3f}" in words
    for row in test["confusion"]:
        for count in row:
            assert f"{count:,}" in words and f"{count / sum(row):.1%}" in words
    machine = json.loads((run / "environment.json").read_text("utf-8"))["machine"]
    assert "lstm" in words and "allreduce" in words and machine["processor"] in words
    assert "Training rows 25,000" in words and "steps, after 12 s of learning word vectors" in words


def test_scaling_agrees_with_figures_computed_by_hand(drawn: tuple[Path, str], tmp_path: Path) -> None:
    run, without = drawn
    rows = [{"workers": 2, "samples_per_s": 1500.0}, {"workers": 1, "samples_per_s": 1000.0}]
    sources = [run, write_result(tmp_path / "b.json", rows)]
    text = tenor.report(sources, tmp_path / "report.html").read_text("utf-8")
    assert "1,000 samples/s with 1 worker; 1,500 with 2 (1.50× the first, 75% of ideal)." in text
    assert "speed-up" not in without


def test_waiting_is_summed_by_worker(run: Path) -> None:
    lines = [
        {"event": "step", "compute_seconds": [3.0, 1.0], "wait_seconds": [0.0, 2.0]},
        {"event": "step", "compute_seconds": [3.0, 2.0], "wait_seconds": [2.0, 3.0]},
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "Worker 0 waited 25.0% of its time, worker 1 waited 62.5% of its time." in report(run)


def test_the_file_is_self_contained(run: Path, tmp_path: Path) -> None:
    text = report(run, write_result(tmp_path / "b.json", [{"workers": 1, "samples_per_s": 900.0}]))
    page = Page(text)
    assert "link" not in page.tags and "img" not in page.tags and page.tags.count("script") == 1
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    targets = [value or "" for name, value in page.attributes if name in ("src", "href", "xlink:href")]
    inside = [value for value in targets if not value.startswith(("data:image/png;base64,", "data:text/csv;"))]
    assert all(value.startswith("#") and value[1:] in page.ids for value in inside)
    assert len(page.ids) == len(set(page.ids)), "two plots share an id"


def test_every_plot_is_named_for_screen_readers(drawn: tuple[Path, str]) -> None:
    _, text = drawn
    labels = re.findall(r'<svg[^>]*role="img" aria-labelledby="(\S+) (\S+)">', text)
    assert len(labels) == text.count("<svg") == 7
    for title, description in labels:
        assert re.search(rf'<title id="{title}">[^<]+</title><desc id="{description}">[^<]+</desc>', text)


def test_the_same_run_gives_the_same_bytes(run: Path) -> None:
    assert report(run) == report(run)


def test_hostile_text_is_escaped(tmp_path: Path) -> None:
    run = write_run(tmp_path / "<b>bold & co", classes=(EVIL, "positive", "$\\frac{$"))
    change(run, "config.json", **{EVIL: {EVIL: EVIL}})
    change(run, "environment.json", date=EVIL)
    change(run, "result.json", weights_sha256=EVIL, workers=EVIL, steps=EVIL)
    page = Page(report(run))
    assert not {"img", "b"} & set(page.tags) and page.tags.count("script") == 1
    assert "<b>bold & co" in page.words and EVIL in page.words


@pytest.mark.parametrize("num_classes", [3, 5])
def test_many_classes_are_drawn(tmp_path: Path, num_classes: int) -> None:
    names = tuple(f"{stars} stars" for stars in range(1, num_classes + 1))
    words = Page(report(write_run(tmp_path / "stars", classes=names))).words
    assert all(f"{name} reviews" in words for name in names)


def test_an_unfinished_run_is_drawn(run: Path) -> None:
    (run / "result.json").unlink()
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:50]) + lines[50][:20])
    text = report(run)
    assert "Learning curve over epochs" in text and "validation reviews are classified correctly" in text


@pytest.mark.parametrize(
    "values",
    [
        {"test": None, "valid": None},
        {"test": {"accuracy": float("nan"), "confusion": [[1]], "per_class": [], "majority_baseline": 3}},
        {"test": {"accuracy": "0.9", "confusion": "no", "per_class": {"a": 1}}},
        {"seconds": None, "samples_per_s": float("inf"), "workers": None},
    ],
)
def test_missing_and_odd_values_are_left_out(run: Path, values: dict[str, Any]) -> None:
    change(run, "result.json", **values)
    words = Page(report(run)).words
    assert "nan" not in words.lower().split() and "inf" not in words.lower().split()


def test_an_empty_run_still_gives_a_page(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"format": FORMAT}))
    assert "has not been evaluated yet" in report(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", b"{", "config.json: is not JSON"),
        ("result.json", b"[1]", "result.json: not a JSON object"),
        ("result.json", b"\xff", "result.json: not valid JSON"),
        ("config.json", b"\xff", "config.json: is not JSON"),
        ("config.json", b"[" * 100_000, "config.json: is not JSON"),
    ],
)
def test_a_damaged_run_is_named(run: Path, file: str, content: bytes, words: str) -> None:
    (run / file).write_bytes(content)
    with pytest.raises(RunError, match=re.escape(words)):
        report(run)
    assert not (run / "report.html").exists()


def test_nothing_half_written_is_left(run: Path) -> None:
    (run / "taken").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        tenor.report(run, run / "taken")
    (run / "result.json").write_text("[]")
    with pytest.raises(RunError, match="not a JSON object"):
        tenor.report(run, run / "no" / "folder.html")
    assert not (run / "no").exists()
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []


def test_the_command_writes_into_the_run(run: Path, tmp_path: Path) -> None:
    got = call_tenor("report", run, "--json").ok().json
    assert got == {
        "sources": [str(run)],
        "report": str(run / "report.html"),
        "bytes": (run / "report.html").stat().st_size,
    }
    bench = write_result(tmp_path / "bench.json", [{"name": "a", "workers": 1, "samples_per_s": 10.0}])
    call_tenor("report", run, bench, "--out", tmp_path / "r.html").ok()
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "10 samples/s with 1 worker" in text and "1 run and 1 result" in text


def test_wrong_folders_and_files_are_one_line(tmp_path: Path, run: Path) -> None:
    assert "no config.json" in call_tenor("report", tmp_path / "nothing").failed(1)
    (tmp_path / "bench.json").write_text("[]")
    assert "bench.json: is not JSON" in call_tenor("report", run, tmp_path / "bench.json").failed(2)
    assert "No such file" in call_tenor("report", run, tmp_path / "none.json").failed(2)
