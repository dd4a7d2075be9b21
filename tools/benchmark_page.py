"""Write docs/benchmarks.md and its plots from benchmarks/*.json: `python tools/benchmark_page.py`.

A plot shows the median of each row as a dot and its smallest and largest repeat as a line. The plots are plain SVG
text, so that the same results give the same bytes on every machine and a test can compare them.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmark_sections import SECTIONS, Row, Section

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "images" / "benchmarks"
_HEAD = """# Benchmarks

`make docs` writes this page from the results in `benchmarks/`; a test fails if the two differ. Each section gives the
machine, the date and the command. Rows are measured in turns, so a slow minute of the machine affects all of them
alike. A dot is the median of the repeats, and the line through it reaches from the smallest to the largest repeat.
`tenor bench … --out FILE.json` also writes a page with more plots beside the result.
"""


def render(results: Path = RESULTS) -> dict[Path, str]:
    """The page and its plots: file → content. A section appears once its result is there."""
    files, parts = {}, [_HEAD]
    for section in SECTIONS:
        file = results / f"{section.file}.json"
        if not file.exists():
            continue
        result = json.loads(file.read_text("utf-8"))
        rows = [row for row in result["rows"] if section.shown(row)]
        files[PLOTS / f"{section.file}.svg"] = plot(section, rows)
        parts.append(_section(section, result, rows))
    return {PAGE: "\n".join(parts), **files}


def _section(section: Section, result: dict[str, Any], rows: Sequence[Row]) -> str:
    machine, date = result["environment"]["machine"], result["environment"]["date"][:10]
    where = f"{machine['cores']} cores of an {machine['processor'].replace('(R)', '').replace(' Processor', '')}"
    columns = [column for column in section.columns if any(column.key in row for row in rows)]
    table = [f"| {' | '.join(column.title for column in columns)} |", "|---" * len(columns) + "|"]
    table += [f"| {' | '.join(column.text(row) for column in columns)} |" for row in rows]
    lines = [
        f"## {section.title}",
        "",
        textwrap.fill(section.words, 118, break_on_hyphens=False),
        "",
        f"Measured on {where}, {date}:",
        "",
    ]
    lines += ["```sh", result.get("command") or section.command, "```", ""]
    lines += [f"![{section.title}: {section.axis} of each row](images/benchmarks/{section.file}.svg)", ""]
    return "\n".join([*lines, *table, ""])


_LEFT, _RIGHT, _LINE, _WIDTH = 210, 90, 24, 760
_OTHERS = (
    "pandas",
    "polars",
    "wc",
    "ddp-2",
    "course-small",
    "gensim-1",
    "gensim-2",
    "fasttext-1",
    "fasttext-2",
)  # rows that are not Tenor


def plot(section: Section, rows: Sequence[Row]) -> str:
    """A dot for each row's median on a common axis, with a line over its repeats."""
    spreads = [row.get("spread", {}).get(section.plotted, {}) for row in rows]
    middles = [row[section.plotted] for row in rows]
    lows = [spread.get("min", value) for spread, value in zip(spreads, middles, strict=True)]
    highs = [spread.get("max", value) for spread, value in zip(spreads, middles, strict=True)]
    first, last, step = axis(min(lows), max(highs))
    height = _LINE * len(rows) + 56

    def x(value: float) -> str:
        return f"{_LEFT + (value - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(section.title)}: {escape(section.axis)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    bottom = 14 + _LINE * len(rows)
    for count in range(round((last - first) / step) + 1):
        value = first + count * step
        lines += [
            f'<path d="M{x(value)} 10V{bottom}" stroke="#e3e6ea"/>',
            f'<text x="{x(value)}" y="{bottom + 16}" fill="#55606e" text-anchor="middle">{value:,.10g}</text>',
        ]
    lines.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{bottom + 34}" fill="#55606e" text-anchor="middle">'
        f"{escape(section.axis)}</text>"
    )
    for number, (row, low, middle, high) in enumerate(zip(rows, lows, middles, highs, strict=True)):
        y = 26 + _LINE * number
        colour = "#8a94a0" if row["name"] in _OTHERS else "#1f5fb8"
        lines += [
            f'<text x="{_LEFT - 12}" y="{y + 4}" fill="#1b2430" text-anchor="end">{escape(section.name(row))}</text>',
            f'<path d="M{x(low)} {y}H{x(high)}" stroke="{colour}" stroke-width="2" stroke-linecap="round"/>',
            f'<circle cx="{x(middle)}" cy="{y}" r="5" fill="{colour}"/>',
            f'<text x="{_WIDTH - 12}" y="{y + 4}" fill="#1b2430" text-anchor="end">{_short(middle)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def axis(low: float, high: float) -> tuple[float, float, float]:
    """First tick, last tick and step of an axis over [low, high]; it starts at 0 unless the values are close."""
    low = 0.0 if low < 0.6 * high else low
    span = (high - low) or high
    power = 10.0 ** math.floor(math.log10(span))
    step = next(step for step in (0.2 * power, 0.5 * power, power, 2 * power) if span / step <= 7)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def main() -> None:
    for file, text in render().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
