"""Building blocks of HTML pages. Every value from outside is escaped here, so callers cannot forget it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from tenor.reports.drawing.files import links
from tenor.reports.drawing.plot import Plot
from tenor.reports.drawing.theme import style_sheet
from tenor.reports.values import number

MOST_ROWS = 100  # in a table
MOST_COLUMNS = 60  # in a table
MOST_CHARACTERS = 1000  # in a value


@dataclass(frozen=True)
class Section:
    """A part of a page, or all of it: a title, HTML that belongs to the title, and HTML below."""

    title: str
    head: list[str]
    body: list[str]


@dataclass(frozen=True)
class Cell:
    """A cell of a table whose text does not sort by itself, such as a time with its interval."""

    text: str
    value: float | None  # what sorting compares


def page(title: str, body: Sequence[str]) -> str:
    """Return a whole document with an inline style sheet and one inline script.

    The content policy makes the browser refuse all requests, and every script but the one whose hash it names. So even
    text that were not escaped could not run.
    """
    style, script = _asset("page.css"), _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style_sheet()}{style}</style></head>",
            "<body><main>",
            *body,
            f"</main><script>{script}</script></body></html>\n",
        ]
    )


def _asset(name: str) -> str:
    return resources.files("tenor.reports").joinpath(name).read_text("utf-8")


def card(title: str, inner: str, wide: bool = False) -> str:
    """Return a box with a title; `inner` is HTML."""
    return f'<section class="card{" wide" if wide else ""}"><h2>{escape(title)}</h2>{inner}</section>'


def folded(title: str, inner: str) -> str:
    """Return a wide box that shows only its title until the reader opens it; `inner` is HTML."""
    return f'<details class="card wide"><summary>{escape(title)}</summary>{inner}</details>'


def grid(cards: Sequence[str]) -> str:
    """Return boxes beside each other on wide screens."""
    return f'<div class="grid">{"".join(cards)}</div>'


def tiles(figures: Sequence[tuple[str, str, str]]) -> str:
    """Return a row of large figures, each given as (name, value, note)."""
    cells = [
        f'<div class="card tile"><dt>{escape(name)}</dt><dd class="figure">{escape(value)}</dd>'
        f'<dd class="beside">{escape(note)}</dd></div>'
        for name, value, note in figures
    ]
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def plot(drawing: Plot) -> str:
    """Return a card with a plot, its caption, and links to its files."""
    files = links(drawing.title, drawing.png, drawing.csv)
    inner = (
        f'<figure><div class="drawing">{drawing.svg}</div><figcaption>{escape(drawing.caption)}</figcaption></figure>'
    )
    return card(drawing.title, inner + files, drawing.wide)


def plots(drawings: Sequence[Plot | None]) -> list[str]:
    """Return a card for each drawing that exists."""
    return [plot(drawing) for drawing in drawings if drawing is not None]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Return a table; the first column names the row, columns of numbers are right-aligned."""
    shown = [list(row[:MOST_COLUMNS]) for row in rows[:MOST_ROWS]]
    is_right = [i > 0 and not any(_is_long(row[i]) for row in shown if i < len(row)) for i in range(len(head))]
    titles = "".join(
        f'<th scope="col"{_side(right)}>{escape(title)}</th>'
        for title, right in zip(head[:MOST_COLUMNS], is_right, strict=False)
    )
    lines = []
    for first, *rest in shown:
        cells = "".join(
            f"<td{_side(right)}{_raw(value)}>{escape(show(value))}</td>"
            for value, right in zip(rest, is_right[1:], strict=False)
        )
        lines.append(f'<tr><th scope="row"{_raw(first)}>{escape(show(first))}</th>{cells}</tr>')
    words = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    inner = f"<thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'{words}<div class="scroll"><table>{inner}</table></div>{_more(len(rows))}'


def pairs(values: Mapping[str, Any]) -> str:
    """Return a table of names and values; the names of nested values are joined with dots."""
    flat = flatten(values)
    cells = [
        f'<tr><th scope="row">{escape(cut(name))}</th><td>{escape(plain(value))}</td></tr>'
        for name, value in flat[:MOST_ROWS]
    ]
    return f'<div class="scroll"><table><tbody>{"".join(cells)}</tbody></table></div>{_more(len(flat))}'


def faint(lines: Sequence[str]) -> str:
    """Return notes, one paragraph each."""
    return "".join(f'<p class="faint">{escape(cut(line))}</p>' for line in lines[:MOST_ROWS])


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
    value = value.text if isinstance(value, Cell) else value
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


def _raw(value: Any) -> str:
    """Return the number behind a cell as an attribute, for sorting; that of a range is its lower end."""
    found = value.value if isinstance(value, Cell) else _read(value) if isinstance(value, str) else number(value)
    return "" if found is None else f' data-value="{found!r}"'


_NUMBER = re.compile(r"(?:[×±$] ?)?([-−+]?)(\d{1,3}(?:,\d{3})+|\d{1,15})(\.\d+)?(?: ?%|–[\d,.]+| \(.*\))?", re.ASCII)


def _read(text: str) -> float | None:
    """The number in a text such as `1,234`, `± 5%`, `0.96–1.02` or `+1.2 (0.3 to 2.1)`.

    None for other words, and for plain numbers, which the page's script reads itself.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    digits = found[1].replace("−", "-") + found[2].replace(",", "") + (found[3] or "")
    return None if digits == text else float(digits)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 30


def _side(right: bool) -> str:
    return ' class="number"' if right else ""
