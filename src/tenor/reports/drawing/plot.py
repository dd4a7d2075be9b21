"""A finished plot: inline SVG, words, and the files to download."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from tenor.reports.drawing.files import to_csv, to_png
from tenor.reports.drawing.svg import inline


@dataclasses.dataclass(frozen=True)
class Plot:
    """A drawing with its title and caption, and as PNG and CSV; a file that would be too large is empty."""

    title: str
    svg: str
    caption: str
    wide: bool = False
    png: bytes = b""
    csv: str = ""


@dataclasses.dataclass(frozen=True)
class PlotData:
    """The numbers behind a plot, as a table."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


def finish(figure: Figure, title: str, words: str, data: PlotData, wide: bool = False) -> Plot:
    """Turn a figure into a plot.

    Args:
        figure: The figure; it cannot be used afterwards.
        title: Title of the plot.
        words: The content in words, for the caption and for screen readers.
        data: The numbers that the figure shows.
        wide: Whether the plot takes the whole width of the page.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # in a PNG; the browser has fonts for all scripts
        svg = inline(figure, title, words)
        return Plot(title, svg, words, wide, to_png(figure), to_csv(data.head, data.rows))
