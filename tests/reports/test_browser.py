"""The report in a real browser: every plot is drawn and readable at 1280 pixels, and nothing is requested."""

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


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the browser measures in a copy without the content policy, which would block scripts and requests."""
    folder = tmp_path_factory.mktemp("browser")
    run = write_run(folder / "reviews")
    rows = [{"workers": n, "samples_per_s": 900.0 * n**0.8} for n in (1, 2, 4)]
    bench = folder / "bench.json"
    bench.write_text(json.dumps({"scenario": "scaling", "rows": rows}))
    report = tenor.report([run, bench], folder / "report.html").read_text("utf-8")
    copy = folder / "copy.html"
    copy.write_text(_POLICY.sub("", report).replace("</body>", _MEASURE + "</body>"), "utf-8")
    document, requests = browse(copy)
    found = re.search(r'<pre id="seen">BEGIN(.*?)END</pre>', document, re.DOTALL)
    assert found is not None
    words = found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return {**json.loads(words), "requests": requests}


def test_every_plot_is_drawn(seen: dict[str, Any]) -> None:
    assert [plot["title"] for plot in seen["plots"]] == [
        "Learning curve over epochs",
        "Learning curve over seconds",
        "Confusion matrix on the test split",
        "Calibration on the test split",
        "Timeline of the workers over a few steps",
        "Share, computing and waiting by worker",
        "Computing and waiting by worker",
        "Throughput, speed-up and efficiency by workers (samples/s)",
    ]
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
