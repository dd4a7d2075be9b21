"""The files of a plot: a PNG in the colours of the light theme, and CSV that no spreadsheet computes."""

from __future__ import annotations

import base64
import csv
import io
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.runs import write_run
from matplotlib import colors
from PIL import Image

import tenor
from tenor.reports.drawing import files
from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import DARK, INK, LIGHT, PLACEHOLDERS, SERIES, canvas, style_sheet
from tenor.reports.page import plot as as_card


def make(title: str = "A title", text: str = "words", data: PlotData | None = None) -> Plot:
    with canvas(4, 3) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=SERIES[1], linewidth=6)
        axes.barh([0.2], [0.5], color=SERIES[2])
        axes.broken_barh([(0.6, 0.3)], (0.1, 0.2), facecolors=SERIES[3])
        axes.text(0.1, 0.8, text, color=INK, fontsize=20)
        return finish(figure, title, "caption", data or PlotData(["x", "y"], [[1, 2.5], ["=1+1", None]]))


def pixels(png: bytes) -> set[tuple[int, int, int]]:
    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
    return set(map(tuple, np.unique(image, axis=0).tolist()))


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(round(255 * part) for part in colors.to_rgb(colour))


def test_a_png_has_the_colours_of_the_light_theme_and_no_placeholder() -> None:
    found = pixels(make().png)
    for name in ("paper", "ink", "b", "c", "d"):
        assert rgb(LIGHT[name]) in found, name
    assert not {rgb(colour) for colour in PLACEHOLDERS.values()} & found


def test_the_svg_has_variables_and_both_themes_define_them() -> None:
    svg = make().svg
    used = set(re.findall(r"var\(--(\w+)\)", svg))
    assert {"ink", "b", "c", "d", "grid"} <= used <= set(LIGHT) == set(DARK)
    assert not set(PLACEHOLDERS.values()) & set(re.findall(r"#\w{6}", svg))
    assert all(f"--{name}: {DARK[name]};" in style_sheet() for name in used)


def test_the_csv_has_full_precision_and_no_formula() -> None:
    rows = [[0.1 + 0.2, "a,b"], [1e-9, "=SUM(A1)"], [None, "@x"], [-5, "-5"]]
    back = list(csv.reader(io.StringIO(files.to_csv(["n", "+t"], rows))))
    assert back == [["n", "'+t"], [str(0.1 + 0.2), "a,b"], ["1e-09", "'=SUM(A1)"], ["", "'@x"], ["-5", "'-5"]]


def test_files_that_are_too_large_are_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert as_card(make()).count("<a download=") == 2
    monkeypatch.setattr(files, "PNG_BYTES", 100)
    monkeypatch.setattr(files, "CSV_BYTES", 10)
    large = make()
    assert (large.png, large.csv) == (b"", "") and "<a " not in as_card(large)


def test_links_hold_the_files_and_names_are_plain() -> None:
    card = as_card(make('Über <b>"x"</b> & 50 %'))
    found = re.findall(r'<a download="([^"]*)" href="data:([^;]*);[^"]*base64,([^"]*)"', card)
    assert [name for name, _, _ in found] == ["ber-b-x-b-50.png", "ber-b-x-b-50.csv"]
    assert base64.b64decode(found[0][2]).startswith(b"\x89PNG")
    assert base64.b64decode(found[1][2]).decode() == "x,y\n1,2.5\n'=1+1,\n"
    assert "<b>" not in card


def test_scripts_that_the_font_lacks_give_no_warning() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        make(text="한국어 भाषा 🙂")
    assert seen == []


def test_the_same_figure_gives_the_same_bytes() -> None:
    one, other = make(), make()
    assert (one.svg, one.png, one.csv) == (other.svg, other.png, other.csv)
    assert make("Another").svg != one.svg


def test_two_plots_of_a_page_share_no_id() -> None:
    ids: list[Any] = [re.findall(r'\bid="([^"]+)"', make(title).svg) for title in ("A", "B")]
    assert len(set(ids[0] + ids[1])) == len(ids[0]) + len(ids[1])


def test_every_plot_of_a_run_is_offered_as_png_and_csv(tmp_path: Path) -> None:
    text = tenor.report(write_run(tmp_path / "run"), tmp_path / "page.html").read_text("utf-8")
    assert text.count("<svg") == text.count("data:image/png") == text.count("data:text/csv") == 7
    assert len(text) < 1_500_000
