"""Reports in a real browser: every plot is drawn and readable, tables sort, and no request or other script runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import CHROMIUM, browse
from helpers.runs import write_run

import tenor

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_MEASURE = """<script>addEventListener("load", () => {
  const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom] };
  const size = e => e.getBoundingClientRect().height;
  const seen = {
    width: document.documentElement.scrollWidth,
    window: innerWidth,
    resources: performance.getEntriesByType("resource").length,
    plots: [...document.querySelectorAll("svg")].map(svg => ({
      title: svg.querySelector("title").textContent,
      box: box(svg),
      shapes: [...svg.querySelectorAll("path, use")].filter(e => size(e) || e.getBoundingClientRect().width).length,
      texts: [...svg.querySelectorAll("text")].map(t => ({words: t.textContent, box: box(t)})),
    })),
    cards: [...document.querySelectorAll(".card")].map(box),
  };
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = "BEGIN" + JSON.stringify(seen) + "END";
  document.body.append(out);
});</script>"""


def write_result(file: Path, scenario: str, rows: list[dict[str, Any]]) -> Path:
    file.write_text(json.dumps({"scenario": scenario, "rows": rows, "environment": {"machine": {"cores": 2}}}))
    return file


def write_page(folder: Path, kind: str) -> Path:
    """One run with a benchmark, or several runs with a plan."""
    run = write_run(folder / "reviews")
    scaling = [{"workers": n, "samples_per_s": 900.0 * n**0.8} for n in (1, 2, 4)]
    if kind == "one":
        return tenor.report([run, write_result(folder / "b.json", "scaling", scaling)], folder / "report.html")
    others = [write_run(folder / f"another run with {n} workers", workers=n) for n in (1, 4)]
    plan = [
        {
            "name": f"p2 ×{n}",
            "seconds": 900 / n,
            "seconds_low": 700 / n,
            "dollars": n**0.3,
            "accuracy": 0.9 - n / 99,
        }
        for n in (1, 2, 4, 8)
    ]
    sources = [run, *others, write_result(folder / "plan.json", "plan", plan)]
    return tenor.report(sources, folder / "report.html", tenor.ReportSettings(price=1.0))


@pytest.fixture(scope="module", params=["one", "several"])
def seen(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return what the browser measures in a copy without the content policy, which would block scripts and requests."""
    folder = tmp_path_factory.mktemp("browser")
    report = write_page(folder, request.param).read_text("utf-8")
    copy = folder / "copy.html"
    copy.write_text(_POLICY.sub("", report).replace("</body>", _MEASURE + "</body>"), "utf-8")
    document, requests = browse(copy)
    return {**read_seen(document), "requests": requests, "kind": request.param}


def read_seen(document: str) -> Any:
    found = re.search(r'<pre id="seen">BEGIN(.*?)END</pre>', document, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


PLOTS = {
    "one": [
        "Learning curve over epochs",
        "Learning curve over seconds",
        "Confusion matrix on the test split",
        "Calibration on the test split",
        "Timeline of the workers over a few steps",
        "Share, computing and waiting by worker",
        "Computing and waiting by worker",
        "Throughput, speed-up and efficiency by workers (samples/s)",
    ],
    "several": [
        "Learning curves over epochs",
        "Learning curves over seconds",
        "Throughput, speed-up and efficiency by workers (samples/s)",
        "Epochs until a validation accuracy of 0.873",
        "Seconds until a validation accuracy of 0.873",
        "Calibration on the test split",
        "Confusion matrices on the test split",
        "Accuracy against dollars",
        "Time against dollars",
        "Accuracy against dollars",
    ],
}


def test_every_plot_is_drawn(seen: dict[str, Any]) -> None:
    assert [plot["title"] for plot in seen["plots"]] == PLOTS[seen["kind"]]
    for plot in seen["plots"]:
        left, top, right, bottom = plot["box"]
        assert right - left > 400 and bottom - top > 100, plot["title"]
        assert plot["shapes"] >= 6 and len(plot["texts"]) >= 5, plot["title"]


def test_it_is_readable_at_1280_pixels(seen: dict[str, Any]) -> None:
    assert seen["window"] == 1280
    assert seen["width"] <= 1280, "the page scrolls sideways"
    for plot in seen["plots"]:
        left, top, right, bottom = plot["box"]
        for text in plot["texts"]:
            a, b, c, d = text["box"]
            assert d - b >= 10, f"too small to read: {text['words']}"
            assert left - 8 <= a and c <= right + 8 and top - 4 <= b and d <= bottom + 4, f"cut: {text['words']}"


def test_texts_of_a_plot_do_not_cover_each_other(seen: dict[str, Any]) -> None:
    for plot in seen["plots"]:
        boxes = [(text["words"], text["box"]) for text in plot["texts"]]
        for index, (first, one) in enumerate(boxes):
            for second, other in boxes[index + 1 :]:
                across = min(one[2], other[2]) - max(one[0], other[0])
                down = min(one[3], other[3]) - max(one[1], other[1])
                assert across <= 1 or down <= 3, f"{plot['title']}: {first!r} covers {second!r}"


def test_cards_do_not_overlap(seen: dict[str, Any]) -> None:
    for index, one in enumerate(seen["cards"]):
        for other in seen["cards"][index + 1 :]:
            assert min(one[2], other[2]) <= max(one[0], other[0]) or min(one[3], other[3]) <= max(one[1], other[1])


def test_the_page_requests_nothing(seen: dict[str, Any]) -> None:
    assert seen["requests"] == [] and seen["resources"] == 0


def test_a_page_that_makes_a_request_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "requests.html"
    page.write_text('<!doctype html><img src="http://tenor.invalid/pixel.png">')
    assert browse(page)[1] == ["http://tenor.invalid/pixel.png"]


def test_a_narrow_page_does_not_scroll_sideways(tmp_path: Path) -> None:
    report = write_page(tmp_path, "several").read_text("utf-8")
    copy = tmp_path / "copy.html"
    copy.write_text(_POLICY.sub("", report).replace("</body>", _MEASURE + "</body>"), "utf-8")
    seen = read_seen(browse(copy, 500)[0])  # the smallest window of the browser
    assert seen["window"] == 500 and seen["width"] <= 500
    heights = [text["box"][3] - text["box"][1] for plot in seen["plots"] for text in plot["texts"]]
    assert min(heights) >= 8


_CLICK = """<script>addEventListener("load", () => {
  const table = document.querySelector("table");
  const column = i => [...table.tBodies[0].rows].map(row => row.cells[i].textContent);
  const click = i => { table.tHead.rows[0].cells[i].querySelector("button").click(); return column(i); };
  let copied = "";
  Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => { copied = text; }}});
  const seen = {rising: click(1), falling: click(1), words: click(0), sorted: table.tHead.rows[0].cells[0].ariaSort};
  document.querySelector("button.copy").click();
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = "BEGIN" + JSON.stringify({...seen, copied}) + "END";
  document.body.append(out);
});</script>"""


def test_tables_sort_by_value_and_can_be_copied(tmp_path: Path) -> None:
    rows = [{"name": name, "seconds": value} for name, value in (("b", 1234.5), ("c", 9.5), ("a", None), ("d", 100))]
    page = tenor.report(write_result(tmp_path / "r.json", "other", rows), tmp_path / "r.html")
    page.write_text(_POLICY.sub("", page.read_text("utf-8")).replace("</body>", _CLICK + "</body>"), "utf-8")
    seen = read_seen(browse(page)[0])
    assert seen["rising"] == ["9.5", "100", "1,234", "–"]  # not as words; without a value last
    assert seen["falling"] == ["1,234", "100", "9.5", "–"]
    assert seen["words"] == ["a", "b", "c", "d"] and seen["sorted"] == "ascending"
    assert seen["copied"].splitlines() == ["name\tseconds", "a\t–", "b\t1,234", "c\t9.5", "d\t100"]


def test_the_policy_allows_the_pages_script_and_no_other(tmp_path: Path) -> None:
    page = tenor.report(write_run(tmp_path / "run", epochs=1, steps=3), tmp_path / "r.html")
    evil = "<script>document.title = 'changed'</script><img src=x onerror=\"document.title = 'changed'\">"
    page.write_text(page.read_text("utf-8").replace("<main>", f"<main>{evil}"), "utf-8")
    document, requests = browse(page)
    assert 'class="copy"' in document and 'class="sort"' in document  # the page's own script has run
    assert "<title>changed" not in document and requests == []
