"""Building blocks of HTML pages. Every value from outside is escaped here, so callers cannot forget it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from tenor.reports.plots import Plot
from tenor.reports.values import number

# The tests check that pages load nothing; this policy also makes the browser refuse requests and scripts.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MOST_ROWS = 100  # in a table
MOST_CHARACTERS = 1000  # in a value


def page(title: str, body: Sequence[str]) -> str:
    """Return a whole document with an inline style sheet."""
    style = resources.files("tenor.reports").joinpath("page.css").read_text("utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style></head>",
            "<body><main>",
            *body,
            "</main></body></html>\n",
        ]
    )


def card(title: str, inner: str, wide: bool = False) -> str:
    """Return a box with a title; `inner` is HTML."""
    return f'<section class="card{" wide" if wide else ""}"><h2>{escape(title)}</h2>{inner}</section>'


def tiles(figures: Sequence[tuple[str, str, str]]) -> str:
    """Return a row of large figures, each given as (name, value, note)."""
    cells = [
        f'<div class="card tile"><dt>{escape(name)}</dt><dd class="figure">{escape(value)}</dd>'
        f'<dd class="beside">{escape(note)}</dd></div>'
        for name, value, note in figures
    ]
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def plot(drawing: Plot) -> str:
    """Return a card with a plot and its caption."""
    inner = f"<figure>{drawing.svg}<figcaption>{escape(drawing.caption)}</figcaption></figure>"
    return card(drawing.title, inner, drawing.wide)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Return a table; the first column names the row, the other cells are right-aligned."""
    titles = "".join(f'<th scope="col"{_side(i > 0)}>{escape(title)}</th>' for i, title in enumerate(head))
    lines = []
    for first, *rest in rows[:MOST_ROWS]:
        cells = "".join(f"<td{_side(True)}>{escape(show(value))}</td>" for value in rest)
        lines.append(f'<tr><th scope="row">{escape(show(first))}</th>{cells}</tr>')
    words = f"<caption>{escape(caption)}</caption>" if caption else ""
    inner = f"{words}<thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>{_more(len(rows))}'


def pairs(values: Mapping[str, Any]) -> str:
    """Return a table of names and values; the names of nested values are joined with dots."""
    flat = flatten(values)
    cells = [
        f'<tr><th scope="row">{escape(cut(name))}</th><td>{escape(plain(value))}</td></tr>'
        for name, value in flat[:MOST_ROWS]
    ]
    return f'<div class="scroll"><table><tbody>{"".join(cells)}</tbody></table></div>{_more(len(flat))}'


def cut(text: str) -> str:
    """Return the text, shortened to MOST_CHARACTERS."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _more(count: int) -> str:
    return f'<p class="faint">{count - MOST_ROWS:,} more rows are not shown.</p>' if count > MOST_ROWS else ""


def flatten(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Return (dotted name, value) for every value inside nested objects."""
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        flat += flatten(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", value)]
    return flat


def show(value: Any) -> str:
    """Format a value for reading: rounded, with thousands separators."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return cut(", ".join(map(show, value[:MOST_ROWS]))) or "–"
    if isinstance(value, int):
        return cut(f"{value:,}")
    if isinstance(value, float) and number(value) is not None:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return cut(str(value))


def plain(value: Any) -> str:
    """Format a setting as a user types it, such as 0.002 or 20002, without rounding."""
    if isinstance(value, list):
        return cut(", ".join(map(plain, value[:MOST_ROWS]))) or "–"
    return cut(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else show(value)


def _side(right: bool) -> str:
    return ' class="number"' if right else ""
