"""The files that a page offers for each plot: the drawing as PNG and its data as CSV, inside the page as data URLs."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib
from matplotlib import colors
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from tenor.reports.drawing.theme import LIGHT, PLACEHOLDERS, STYLE

PNG_BYTES = 300_000  # the largest drawing that is offered
CSV_BYTES = 300_000  # the largest table that is offered
_DPI = 120
_REAL = {PLACEHOLDERS[name]: colour for name, colour in LIGHT.items()}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute a cell that starts like this

Rows = Sequence[Sequence[Any]]


def to_png(figure: Figure) -> bytes:
    """Return the figure as a PNG file in the colours of the light theme; empty if it is too large.

    The figure must have been drawn before, and its colours change, so nothing can be done with it afterwards.
    """
    figure.set_layout_engine("none")  # keeps the layout of the first drawing
    for artist in figure.findobj():
        _repaint(artist)
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="png", dpi=_DPI, facecolor=LIGHT["paper"], metadata={"Software": None})
    return buffer.getvalue() if buffer.tell() <= PNG_BYTES else b""


def _repaint(artist: Any) -> None:
    """Replace the placeholder colours of one part of a figure."""
    if isinstance(artist, Line2D):
        artist.set_color(_real(artist.get_color()))
        artist.set_markerfacecolor(_real(artist.get_markerfacecolor()))
        artist.set_markeredgecolor(_real(artist.get_markeredgecolor()))
    elif isinstance(artist, Text):
        artist.set_color(_real(artist.get_color()))
    elif isinstance(artist, Patch):
        artist.set_facecolor(_real(artist.get_facecolor()))
        artist.set_edgecolor(_real(artist.get_edgecolor()))
    elif isinstance(artist, Collection):
        artist.set_facecolor([_real(colour) for colour in artist.get_facecolor()])
        artist.set_edgecolor([_real(colour) for colour in artist.get_edgecolor()])


def _real(colour: Any) -> Any:
    found = _REAL.get(colors.to_hex(colour))
    return colour if found is None else colors.to_rgba(found, colors.to_rgba(colour)[3])


def to_csv(head: Sequence[str], rows: Rows) -> str:
    """Return a table as CSV with full precision; empty if it is too large."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(title) for title in head])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
        if out.tell() > CSV_BYTES:
            return ""
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def links(title: str, png: bytes, text: str) -> str:
    """Return HTML with a link for each file that is not empty."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "plot"
    files = (
        ("PNG", "png", "image/png", png),
        ("CSV", "csv", "text/csv;charset=utf-8", text.encode("utf-8", "replace")),
    )
    found = [
        f'<a download="{name}.{suffix}" href="data:{kind};base64,{base64.b64encode(data).decode()}" '
        f'aria-label="{escape(title)} as {label}">{label}</a>'
        for label, suffix, kind, data in files
        if data
    ]
    return f'<p class="files">{" ".join(found)}</p>' if found else ""
