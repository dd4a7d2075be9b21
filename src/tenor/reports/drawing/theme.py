"""The colours of pages and plots in the light and the dark theme, and the style of all plots.

Figures are drawn in placeholder colours. In the inline SVG they become CSS variables, because the browser chooses the
theme; in a PNG file they become the colours of the light theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

LIGHT = {
    "ink": "#1c2430",
    "faint": "#5b6675",
    "grid": "#e3e7ec",
    "paper": "#ffffff",
    "a": "#2563b8",
    "b": "#b3541e",
    "c": "#1f7a5c",
    "d": "#7d3fb0",
    "e": "#a82f62",
    "f": "#6f6a14",
}
DARK = {
    "ink": "#e6e9ee",
    "faint": "#9aa5b3",
    "grid": "#303844",
    "paper": "#1b212a",
    "a": "#6ea8f7",
    "b": "#f0a066",
    "c": "#5cc9a0",
    "d": "#c9a2f2",
    "e": "#f290b6",
    "f": "#d3ca6c",
}
PLACEHOLDERS = {name: f"#{number:02x}{number:02x}{number:02x}" for number, name in enumerate(LIGHT, start=1)}
INK, FAINT, GRID, PAPER = (PLACEHOLDERS[name] for name in ("ink", "faint", "grid", "paper"))
SERIES = tuple(PLACEHOLDERS[name] for name in "abcdef")
_DASHES = ("-", "--", ":")

STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud, and it uses the font of the page
    "svg.hashsalt": "tenor",  # the same figure gives the same bytes
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": FAINT,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titlecolor": INK,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.8,
    "savefig.facecolor": "none",
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure in the style of the reports. Without pyplot, no global state remains."""
    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def series_style(place: int) -> dict[str, Any]:
    """Return the colour and the dashes of the n-th line of a plot."""
    return {"color": SERIES[place % len(SERIES)], "linestyle": _DASHES[place // len(SERIES) % len(_DASHES)]}


def label_logarithms(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers such as 20 and 0.1, also between powers of ten if there is room."""
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter(LogFormatter(labelOnlyBase=False))


def style_sheet() -> str:
    """Return the colours as CSS variables for both themes."""
    light, dark = (" ".join(f"--{name}: {colour};" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )
