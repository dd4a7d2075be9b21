"""The HTML page of a benchmark: table, plots, notes and machine."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tenor.bench.measuring import table
from tenor.bench.results import Result
from tenor.errors import UsageError
from tenor.reports import bench_plots, page, plots
from tenor.reports.plots import Plot
from tenor.store.atomic import write_bytes


def write_bench_page(result: Result, out: Path) -> Path:
    """Write one self-contained HTML file.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        write_bytes(out, render(result).encode())
    except OSError as error:
        remedy = "choose another path with --out"
        raise UsageError(f"cannot write the page: {error.strerror}", where=out, remedy=remedy) from error
    return out


def render(result: Result) -> str:
    """Return the whole page."""
    cards = [page.card("Results", page.table(*table(result)), wide=True)]
    cards += [page.plot(drawing) for drawing in _drawings(result) if drawing is not None]
    cards += [page.card("Environment", page.pairs(result.environment), wide=True)]
    notes = "".join(f'<p class="faint">{escape(note)}</p>' for note in result.notes)
    title = f"tenor bench {result.scenario}"
    body = [f"<header><h1>{escape(title)}</h1>{notes}</header>", f'<div class="grid">{"".join(cards)}</div>']
    return page.page(title, body)


def _drawings(result: Result) -> list[Plot | None]:
    rows = result.rows
    if result.scenario == "strategies":
        counts = sorted({row["workers"] for row in rows if row.get("curve")} - {1}) or [1]
        return [*(bench_plots.accuracy_curves(rows, count) for count in counts), bench_plots.by_workers(rows)]
    if result.scenario == "prepare":
        return [bench_plots.rates(rows)]
    return [plots.scaling(rows)] if result.scenario == "scaling" else []
