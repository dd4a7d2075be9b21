"""Turns matplotlib figures into inline SVG with real text, theme colours and names for screen readers.

Figures are drawn in placeholder colours, which become CSS variables, because the browser chooses the light or the dark
theme.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import matplotlib
from matplotlib.figure import Figure

INK, FAINT, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
SERIES = ("#050505", "#060606", "#070707")
_THEME = {INK: "ink", FAINT: "faint", GRID: "grid", PAPER: "paper", **dict(zip(SERIES, ("a", "b", "c"), strict=True))}
_STYLE = {
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
    with matplotlib.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def inline(figure: Figure, name: str, title: str, description: str) -> str:
    """Return the figure as an `<svg>` element that can share a page with others.

    Args:
        figure: The figure to convert.
        name: Prefix of all ids, unique on the page.
        title: Name for screen readers.
        description: The content in words, for screen readers.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawing).replace("xlink:href", "href")
    drawing = _prefix_ids(drawing, name)
    for colour, variable in _THEME.items():
        drawing = drawing.replace(colour, f"var(--{variable})")
    box = re.search(r'viewBox="[^"]*"', drawing)
    opening = f'<svg {box.group() if box else ""} role="img" aria-labelledby="{name}-title {name}-desc">'
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    return re.sub(r"<svg[^>]*>", lambda _: opening + words, drawing, count=1).strip()


def _prefix_ids(drawing: str, name: str) -> str:
    """Make all ids unique on the page."""
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r'href="#', f'href="#{name}-', drawing)
    return re.sub(r"url\(#", f"url(#{name}-", drawing)
