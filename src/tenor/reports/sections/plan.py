"""The section of a plan: answers, the table with intervals, plots, and where every number comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from tenor.reports import page
from tenor.reports.page import Cell, Section
from tenor.reports.registry import draw_result
from tenor.reports.result_file import ResultData, Row
from tenor.reports.settings import ReportSettings
from tenor.reports.values import counted, number, readable
from tenor.wording import amount_text, bytes_text, dollars_text, percent_text, seconds_text

MOST_SENTENCES = 30
_COMMAND = re.compile("`([^`]+)`")
_MEANING = {
    "compute": "forward and backward",
    "by_rows": "share of the fixed part of computing that grows with the rows",
    "update": "clipping and applying the update",
    "load": "loading a batch",
    "crowded": "share of loading that delays computing if no core is free",
    "stragglers": "spread of the workers' compute times",
    "machine": "speed of a core of the planned machine, relative to the measured one",
    "bandwidth": "bandwidth of the network",
    "latency": "latency of the network",
    "memory": "bytes per second through shared memory",
    "memory_latency": "seconds to begin an exchange through shared memory",
    "message": "seconds to handle a message",
    "rounds": "latencies per round of an exchange",
    "goodput": "share of the bandwidth that carries data",
    "overlap": "overlap of computing and exchanging, γ − 1",
    "server": "bytes per second that a parameter server handles",
    "prepare": "bytes per second that one worker prepares",
    "noise_scale": "gradient noise scale in samples",
    "model": "what the formulas leave out",
}


def plan_section(result: ResultData, settings: ReportSettings) -> Section:
    """Return everything that a page shows about one plan."""
    details = result.details
    target, source = (readable(str(details.get(name) or ""))[:300] for name in ("target", "source"))
    head = f"<p>Plan for {escape(target)}.</p>" if target else ""
    head += page.faint([f"Made from {source}."]) if source else ""
    answers = _sentences(details.get("answers"))
    body = [page.tiles(_tiles(result.rows, details.get("chosen")))] if result.rows else []
    cards = [page.card("Answers", _paragraphs([*answers, *_experiment(details.get("experiment"))]), wide=True)]
    cards += [page.card("Time and money", page.table(*_money(result.rows), caption=_CAPTION), wide=True)]
    if any(number(row.get("step_seconds")) is not None for row in result.rows):
        cards.append(page.card("Steps and accuracy", page.table(*_steps(result.rows)), wide=True))
    cards += page.plots(draw_result(result, settings))
    if quantities := details.get("quantities"):
        cards.append(page.card("Where the numbers come from", page.table(*_quantities(quantities)), wide=True))
    cards.append(page.card("Assumptions", _paragraphs(_sentences(details.get("assumptions"))), wide=True))
    cards += [page.folded("Environment", page.pairs(result.environment))] if result.environment else []
    notes = page.faint(result.notes)
    if result.command:
        notes += f'<p class="faint"><code>{escape(page.cut(readable(result.command)))}</code></p>'
    return Section("tenor plan", [head, notes], [*body, page.grid(cards)])


_CAPTION = (
    "Each figure is followed by its interval, which should hold the measured value in 9 of 10 cases. P: no other plan "
    "is both faster and cheaper. E: beyond 4 times what was measured, so the interval may be too narrow."
)


def _sentences(values: Any) -> list[str]:
    return [readable(str(line))[:1000] for line in values[:MOST_SENTENCES]] if isinstance(values, list) else []


def _paragraphs(lines: list[str]) -> str:
    """Paragraphs of sentences in which backticks enclose commands."""
    parts = (_COMMAND.sub(r"<code>\1</code>", escape(line)) for line in lines)
    return "".join(f"<p>{part}</p>" for part in parts)


def _experiment(found: Any) -> list[str]:
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        return []
    before, after = number(found.get("before")), number(found.get("after"))
    if before is None or after is None:
        return []
    return [
        f"The most useful next experiment, which narrows the interval from × or ÷ {before:.2f} to × or ÷ {after:.2f}: "
        f"{readable(found['text'])[:600]}."
    ]


def _tiles(rows: list[Row], chosen: Any) -> list[tuple[str, str, str]]:
    """The figures of the chosen plan."""
    if type(chosen) is not int or not 0 <= chosen < len(rows):
        return []
    row = rows[chosen]
    workers = number(row.get("workers")) or 0
    tiles = [("Chosen plan", f"{counted(workers, 'worker')}", f"{_machines(row)}, {_word(row, 'strategy')}")]
    tiles += [
        (title, _value(row, key, show), _interval(row, key, amount_text if key == "dollars" else show))
        for title, key, show in (
            ("Total time", "seconds", seconds_text),
            ("Dollars", "dollars", dollars_text),
            ("Efficiency", "efficiency", percent_text),
        )
    ]
    if number(row.get("accuracy")) is not None:
        tiles.append(("Accuracy", _value(row, "accuracy", _share), _interval(row, "accuracy", _share)))
    return tiles


Show = Callable[[float], str]


def _share(value: float) -> str:
    return f"{value:.3f}"


def _money(rows: list[Row]) -> tuple[list[str], list[list[Any]]]:
    """The table that answers what a plan costs."""
    has_batch = any(number(row.get("batch_size")) for row in rows)
    head = ["workers", "marks", "machines", *(["batch"] if has_batch else []), "total time", "dollars", "efficiency"]
    lines = []
    for row in rows:
        marks = " ".join(mark for mark, key in (("P", "pareto"), ("E", "extrapolated")) if row.get(key) is True)
        machines = Cell(_machines(row), number(row.get("machines")))
        cells = [row.get("workers"), marks, machines, *([row.get("batch_size")] if has_batch else [])]
        money = amount_text if _interval(row, "dollars", amount_text) != "measured" else dollars_text
        cells += [_both(row, "seconds", seconds_text), _both(row, "dollars", money)]
        lines.append([*cells, _both(row, "efficiency", percent_text)])
    return head, lines


_STEPS: tuple[tuple[str, str, Show], ...] = (
    ("prepare", "prepare_seconds", seconds_text),
    ("step", "step_seconds", seconds_text),
    ("epoch", "epoch_seconds", seconds_text),
    ("accuracy", "accuracy", _share),
)


def _steps(rows: list[Row]) -> tuple[list[str], list[list[Any]]]:
    """The table of what happens in a step, and what is learned."""
    columns = [one for one in _STEPS if any(number(row.get(one[1])) is not None for row in rows)]
    has_several = len({_word(row, "machine") for row in rows}) > 1  # kinds of machines
    head = ["workers", *(["machines"] if has_several else []), *(title for title, _, _ in columns), "sent per step"]
    lines = []
    for row in rows:
        sent = number(row.get("bytes_per_step"))
        cells = [Cell(_machines(row), number(row.get("machines")))] if has_several else []
        cells += [_both(row, key, show) for _, key, show in columns]
        lines.append([row.get("workers"), *cells, Cell(bytes_text(sent or 0.0), sent)])
    return head, lines


def _word(row: Mapping[str, Any], key: str) -> str:
    return readable(str(row.get(key)))[:30]


def _machines(row: Mapping[str, Any]) -> str:
    return f"{number(row.get('machines')) or 0:,.0f} × {_word(row, 'machine')}"


def _value(row: Mapping[str, Any], key: str, show: Show) -> str:
    value = number(row.get(key))
    return "–" if value is None else show(value)


def _interval(row: Mapping[str, Any], key: str, show: Show) -> str:
    low, high = number(row.get(f"{key}_low")), number(row.get(f"{key}_high"))
    if low is None:
        return ""
    if high is None:
        return f"at least {show(low)}"
    return "measured" if low == high else f"{show(low)} to {show(high)}"


def _both(row: Mapping[str, Any], key: str, show: Show) -> Cell:
    value, interval = _value(row, key, show), _interval(row, key, show)
    text = f"{value} ({interval})" if interval and interval != "measured" and value != "–" else value
    return Cell(text, number(row.get(key)))


def _quantities(values: Any) -> tuple[list[str], list[list[Any]]]:
    lines = []
    for name, one in values.items() if isinstance(values, dict) else ():
        if isinstance(one, dict):
            value, sigma = number(one.get("value")), number(one.get("sigma"))
            text = "–" if value is None else "× 1" if value == 1.0 else f"{value:,.4g}"
            error = "–" if sigma is None else f"± {sigma:.0%}"
            known = readable(str(name))[:40]
            lines.append([_MEANING.get(known, known), text, error, readable(str(one.get("source")))[:200]])
    return ["quantity", "value", "relative error", "where it comes from"], lines
