"""Turns matplotlib figures into inline SVG with real text, theme colours and names for screen readers."""

from __future__ import annotations

import hashlib
import io
import re
from html import escape

import matplotlib
from matplotlib.figure import Figure

from tenor.reports.drawing.theme import PLACEHOLDERS, STYLE


def inline(figure: Figure, title: str, description: str) -> str:
    """Return the figure as an `<svg>` element that can share a page with others.

    Args:
        figure: The figure to convert.
        title: Name for screen readers.
        description: The content in words, for screen readers.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawing).replace("xlink:href", "href")
    name = "p" + hashlib.sha256(f"{title}{description}{drawing}".encode()).hexdigest()[:10]
    drawing = _prefix_ids(drawing, name)
    for variable, colour in PLACEHOLDERS.items():
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
