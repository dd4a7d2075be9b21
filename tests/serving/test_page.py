"""The page in a real browser: typing, explanations, a CSV file, a download, tabs, dark mode, phone width, the token."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import CHROMIUM
from helpers.chromium import Page, chromium
from helpers.service import Client, chance, served

pytest.importorskip("playwright", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")

TOKEN = "0123456789abcdef"
ROWS = [
    ["id", "comment", "note"],
    ["1", 'He said "good", twice', "a"],
    ["2", "two\nlines", "b"],
    ["3", "", "c"],
    ["4", "semi;colon and é💡", "d"],
]

# The numbers in tables that are shown on more than one line.
BROKEN = """[...document.querySelectorAll("td")].filter(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return /^[\\d.,]+( %)?$/.test(cell.textContent) && range.getClientRects().length > 1;
}).map(cell => cell.textContent)"""


@pytest.fixture
def browser() -> Iterator[Any]:
    """A browser of its own for each test, because a browser starts and ends processes whenever it likes."""
    # A short path, because the browser creates a socket there and socket paths are limited to about 100 characters.
    with tempfile.TemporaryDirectory(prefix="b", ignore_cleanup_errors=True) as home, chromium(Path(home)) as found:
        yield found


@pytest.fixture
def page(browser: Any, client: Client) -> Iterator[Page]:
    opened = Page(browser, f"http://127.0.0.1:{client.port}/")
    yield opened
    assert opened.troubles == []
    assert {url.split("/")[2] for url in opened.requests if not url.startswith(("data:", "blob:"))} == {
        f"127.0.0.1:{client.port}"
    }
    opened.context.close()


def reviews(page: Page, count: int) -> list[tuple[str, str, str]]:
    """Label, probability and words of each review that is shown."""
    page.page.wait_for_selector(f".review >> nth={count - 1}")
    found = page.page.query_selector_all(".review")
    return [tuple(one.query_selector(part).inner_text() for part in ("strong", "span", ".words")) for one in found]  # type: ignore[misc]


def expected(text: str) -> tuple[str, str]:
    positive = chance(text)
    return ("positive" if positive > 0.5 else "negative"), f"{100 * max(positive, 1 - positive):.1f} %"


def test_reviews_are_predicted_and_tinted_while_typing(page: Page) -> None:
    page.page.locator("#texts").press_sequentially("a fine 💡 film")
    assert reviews(page, 1) == [(*expected("a fine 💡 film"), "a fine 💡 film")]
    page.page.keyboard.press("Enter")
    page.page.keyboard.type("<b>bad</b>")
    assert reviews(page, 2)[1] == (*expected("<b>bad</b>"), "<b>bad</b>")
    marks = page.page.query_selector_all(".review mark")
    assert [mark.get_attribute("class") for mark in marks] == [
        f"{'good' if expected(text)[0] == 'positive' else 'bad'} for t4" for text in ("a fine 💡 film", "<b>bad</b>")
    ]
    assert marks[0].get_attribute("title").endswith(f"supports {expected('a fine 💡 film')[0]}: 0.50")
    colours = page.page.eval_on_selector_all("meter", "all => all.map(meter => meter.className)")
    assert colours == [
        "good" if expected(text)[0] == "positive" else "bad" for text in ("a fine 💡 film", "<b>bad</b>")
    ]
    page.page.fill("#texts", "")
    page.page.wait_for_selector(".review", state="detached")


def test_a_csv_file_is_scored_drawn_and_downloaded(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(ROWS)
    page.page.click("#tab-csv")
    page.page.set_input_files("#file", str(file))
    page.page.wait_for_selector("#csv-choice:not([hidden])")  # the file has been read
    assert page.page.input_value("#column") == "1"  # recognised by its name
    page.page.click("#score")
    page.page.wait_for_selector("#csv-result:not([hidden])")
    labels = [expected(row[1])[0] for row in ROWS[1:]]
    counts = page.page.get_attribute("#chart svg", "data-counts")
    assert counts == f"{labels.count('negative')},{labels.count('positive')}"
    with page.page.expect_download() as waiting:
        page.page.click("#download")
    assert waiting.value.suggested_filename == "in-scored.csv"
    text = Path(waiting.value.path()).read_text("utf-8-sig")
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found[0] == [*ROWS[0], "label", "probability"]
    assert [row[:3] for row in found[1:]] == ROWS[1:]
    assert [row[3] for row in found[1:]] == labels
    numbers = [max(chance(row[1]), 1 - chance(row[1])) for row in ROWS[1:]]
    assert [float(row[4]) for row in found[1:]] == pytest.approx(numbers, abs=1e-4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no rows"),
        (b"id,text\n", "has no rows"),
        (b"PK\x03\x04\x00\x00a spreadsheet", "is not a text file"),
        (b"id,price\n1,2.5\n2,3.5\n", "No column seems to contain text"),
        ("id,text\n1,un café très bon\n".encode("latin-1"), "in.csv: 1 row"),
    ],
)
def test_wrong_files_are_named(page: Page, content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    page.page.click("#tab-csv")
    page.page.set_input_files("#file", str(tmp_path / "in.csv"))
    page.page.wait_for_selector(f"text={words}")
    if words.startswith("in.csv"):
        page.page.click("#score")
        page.page.wait_for_selector("text=un café très bon")


def test_a_large_file_is_sent_in_chunks_and_waits_while_the_service_is_busy(page: Page, client: Client) -> None:
    rows = "text\n" + "".join(f"review number {n}\n" for n in range(1000))
    page.page.route("**/predict", once_busy, times=1)
    page.page.click("#tab-csv")
    drop = "(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'dropped.csv'));"
    drop += (
        " document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true})); }"
    )
    page.page.evaluate(drop, rows)
    page.page.click("#score")
    page.page.wait_for_selector("#csv-result:not([hidden])")
    assert page.page.inner_text("#csv-note") == "All 1,000 rows are scored."
    assert client.model is not None and sum(client.model.batches) == 1000
    assert page.page.inner_text("#preview tbody tr:nth-child(20) td") == "review number 19"
    page.troubles.clear()  # the browser reports the 503


def test_another_file_ends_the_scoring_of_the_first_one(page: Page, client: Client, tmp_path: Path) -> None:
    assert client.model is not None
    (tmp_path / "long.csv").write_text("text,label\n" + "a long file,x\n" * 60)
    (tmp_path / "short.csv").write_text("id,text,label\n1,a short file,spam\n2\n")
    page.page.click("#tab-csv")
    page.page.set_input_files("#file", str(tmp_path / "long.csv"))
    client.model.wait.clear()
    page.page.click("#score")
    page.page.set_input_files("#file", str(tmp_path / "short.csv"))
    page.page.wait_for_selector("text=short.csv: 2 rows")
    page.page.click("#score")
    client.model.wait.set()
    page.page.wait_for_selector("#csv-result:not([hidden])")
    assert page.page.inner_text("#csv-note") == "All 2 rows are scored."
    assert page.page.inner_text("#preview thead").split() == ["id", "text", "original_label", "label", "probability"]
    cells = [cell.inner_text() for cell in page.page.query_selector_all("#preview td")]
    assert cells[:4] == ["1", "a short file", "spam", expected("a short file")[0]]
    assert cells[5:9] == ["2", "", "", expected("")[0]]  # a row that ends early


def test_chunks_fit_into_a_small_limit_of_bodies(browser: Any, folder: Path) -> None:
    with served(folder, max_body_kb=4, max_text_length=2000) as client:
        opened = Page(browser, f"http://127.0.0.1:{client.port}/#csv")
        file = {"name": "in.csv", "mimeType": "text/csv", "buffer": ("text\n" + "é" * 1500 + "\n").encode() * 3}
        opened.page.set_input_files("#file", file)
        opened.page.click("#score")
        opened.page.wait_for_selector("text=All 5 rows are scored.")
        opened.context.close()


def once_busy(route: Any) -> None:
    route.fulfill(status=503, headers={"Retry-After": "1"}, body='{"error": "busy"}')


def test_the_tabs_work_with_keys_and_show_the_facts(page: Page) -> None:
    page.page.focus("#tab-type")
    for key, tab in (("ArrowLeft", "behaviour"), ("ArrowRight", "type"), ("End", "behaviour"), ("Home", "type")):
        page.page.keyboard.press(key)
        assert page.page.evaluate("document.activeElement.id") == f"tab-{tab}"
        assert page.page.is_visible(f"#panel-{tab}")
        assert page.page.locator("[role=tabpanel]:visible").count() == 1
    page.page.click("#tab-card")
    assert page.page.inner_text("#card h2") == "A card" and page.page.inner_text("#card td >> nth=1") == "0.9"
    page.page.click("#tab-calibration")
    assert "expected calibration error" in page.page.inner_text("#calibration")
    assert page.page.locator("#calibration circle").count() > 3
    page.page.click("#tab-behaviour")
    assert "irony (hard)\t1\t4\t25.0 %" in page.page.inner_text("#behaviour")


def test_a_run_without_measurements_says_so(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path) as client:
        page = Page(browser, f"http://127.0.0.1:{client.port}/#behaviour").page
        page.wait_for_selector("text=Not measured: this run has no behaviour tests")
        page.click("#tab-calibration")
        page.wait_for_selector("text=Not measured: this run has no metrics")
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_schemes_and_at_phone_width(browser: Any, client: Client, scheme: str) -> None:
    size = {"width": 360, "height": 740}
    opened = Page(browser, f"http://127.0.0.1:{client.port}/", color_scheme=scheme, viewport=size)
    page = opened.page
    page.fill("#texts", "good " * 60 + "x" * 300)
    page.wait_for_selector(".review")
    for tab in ("type", "csv", "card", "calibration", "behaviour"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, f"{tab} scrolls sideways"
        assert page.evaluate(BROKEN) == [], f"{tab} divides a number"
    ink, ground = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert contrast(ink, ground) > 7
    assert (luminance(ground) < 0.1) == (scheme == "dark")
    heights = page.evaluate("[...document.querySelectorAll('[role=tab]')].map(tab => tab.offsetHeight)")
    assert min(heights) >= 44  # large enough for a finger
    opened.context.close()


def luminance(colour: str) -> float:
    """Of a colour such as `rgb(1, 2, 3)`, as the accessibility guidelines (WCAG) define it."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_page_asks_for_the_token(browser: Any, folder: Path) -> None:
    with served(folder, TOKEN) as client:
        opened = Page(browser, f"http://127.0.0.1:{client.port}/")
        page = opened.page
        page.wait_for_selector("#token-dialog[open]")
        page.fill("#token", "not the right token")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token-dialog[open]")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Classes: negative, positive")
        page.reload()
        page.wait_for_selector("text=Classes: negative, positive")  # kept in the tab
        opened.context.close()
