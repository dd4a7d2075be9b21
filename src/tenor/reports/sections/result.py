"""The section of one result of `bench` or `plan`: table, plots, notes and machine."""

from __future__ import annotations

from html import escape
from typing import Any

from tenor.bench.scaling_tables import scaling_tables
from tenor.reports import page
from tenor.reports.page import Section
from tenor.reports.registry import draw_result
from tenor.reports.result_file import ResultData, Row, is_scaling
from tenor.reports.sections.plan import plan_section
from tenor.reports.settings import ReportSettings
from tenor.reports.values import number, readable

_HIDDEN = ("name", "repeats", "spread", "curve", "curves")  # not facts


def result_section(result: ResultData, settings: ReportSettings) -> Section:
    """Return everything that a page shows about one result."""
    if result.scenario == "plan":
        return plan_section(result, settings)
    if is_scaling(result):
        cards = [page.card(one.title, page.table(*one.cells), wide=True) for one in scaling_tables(result.rows)]
    else:
        cards = [page.card("Results", page.table(*result_table(result.rows)), wide=True)]
    cards += page.plots(draw_result(result, settings))
    cards += [page.folded("Environment", page.pairs(result.environment))] if result.environment else []
    notes = page.faint(result.notes)
    if result.command:
        notes += f'<p class="faint"><code>{escape(page.cut(readable(result.command)))}</code></p>'
    return Section(f"tenor bench {result.scenario}", [notes], [page.grid(cards)])


def result_table(rows: list[Row]) -> tuple[list[str], list[list[Any]]]:
    """Return titles and rows of a table: facts, then the median of each figure and, with repeats, its range."""
    spreads: list[Row] = [found if isinstance(found := row.get("spread"), dict) else {} for row in rows]
    facts = _union([name for name in row if name not in spread] for row, spread in zip(rows, spreads, strict=True))
    figures = _union(spreads)
    has_range = any((number(row.get("repeats")) or 1) > 1 for row in rows)
    head = ["name", *facts, *(title for name in figures for title in (name, *(["min–max"] * has_range)))]
    lines = []
    for row, spread in zip(rows, spreads, strict=True):
        cells = [row.get("name"), *(row.get(name) for name in facts)]
        for name in figures:
            cells += [row.get(name), *([_span(spread.get(name))] * has_range)]
        lines.append([_cell(value) for value in cells])
    return [readable(title)[:40] for title in head], lines


def _union(some: Any) -> list[str]:
    names = dict.fromkeys(str(name) for one in some for name in one if name not in _HIDDEN)
    return list(names)[: page.MOST_COLUMNS]


def _cell(value: Any) -> Any:
    return page.plain(list(value.values())) if isinstance(value, dict) else value


def _span(spread: Any) -> str:
    low, high = (number(spread.get(end)) if isinstance(spread, dict) else None for end in ("min", "max"))
    return "–" if low is None or high is None else f"{page.show(low)}–{page.show(high)}"
