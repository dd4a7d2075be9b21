"""HTML pieces. Everything that comes from outside goes through `escape` here, so callers cannot forget it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from tenor.reports.plots import Plot
from tenor.reports.run_data import number

# Belt and braces beside the tests: the browser itself refuses any request and any script.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, body: Sequence[str]) -> str:
    """A whole document with its style inside."""
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
    return f'<section class="card{" wide" if wide else ""}"><h2>{escape(title)}</h2>{inner}</section>'


def tiles(figures: Sequence[tuple[str, str, str]]) -> str:
    """Large figures: (name, value, what stands beside it)."""
    cells = [
        f'<div class="card tile"><dt>{escape(name)}</dt><dd class="figure">{escape(value)}</dd>'
        f'<dd class="beside">{escape(beside)}</dd></div>'
        for name, value, beside in figures
    ]
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def plot(drawing: Plot) -> str:
    inner = f"<figure>{drawing.svg}<figcaption>{escape(drawing.caption)}</figcaption></figure>"
    return card(drawing.title, inner, drawing.wide)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """The first column names the row; numbers stand to the right."""
    titles = "".join(f'<th scope="col"{_side(i > 0)}>{escape(title)}</th>' for i, title in enumerate(head))
    lines = []
    for first, *rest in rows:
        cells = "".join(f"<td{_side(True)}>{escape(show(value))}</td>" for value in rest)
        lines.append(f'<tr><th scope="row">{escape(show(first))}</th>{cells}</tr>')
    words = f"<caption>{escape(caption)}</caption>" if caption else ""
    inner = f"{words}<thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def pairs(values: Mapping[str, Any]) -> str:
    """Names and values, nested ones with dots between."""
    flat = flatten(values)
    cells = [f'<tr><th scope="row">{escape(name)}</th><td>{escape(plain(value))}</td></tr>' for name, value in flat]
    return f'<div class="scroll"><table><tbody>{"".join(cells)}</tbody></table></div>'


def flatten(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        flat += flatten(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", value)]
    return flat


def show(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(show, value)) or "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float) and number(value) is not None:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def plain(value: Any) -> str:
    """A setting as it is typed: 0.002, 20002, not rounded for reading."""
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "–"
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else show(value)


def _side(right: bool) -> str:
    return ' class="number"' if right else ""
