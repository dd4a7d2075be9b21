"""Write docs/benchmarks.md and its plots from benchmarks/*.json: `python tools/benchmark_page.py`.

A plot shows the median of each row as a dot and its smallest and largest repeat as a line. The plots are plain SVG
text, so that the same results give the same bytes on every machine and a test can compare them.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

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

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of a table: a figure of each row, how to write it, and what it counts in."""

    title: str
    key: str
    style: str = ",.0f"
    scale: float = 1.0

    def text(self, row: Row) -> str:
        value = row.get(self.key)
        if value is None:
            return ""
        return value if isinstance(value, str) else format(value * self.scale, self.style)


@dataclass(frozen=True)
class Section:
    """One result file: what was compared, the command that gave it, and which figures are shown."""

    file: str
    title: str
    words: str
    command: str
    columns: Sequence[Column]
    plotted: str
    axis: str
    shown: Callable[[Row], bool] = lambda row: True
    name: Callable[[Row], str] = lambda row: row["name"]


def _with_batch(row: Row) -> str:
    return f"{row['name']}, batch {row['batch_size']}"


_NAME = Column("row", "name")
_BALANCE = (
    _NAME,
    Column("samples/s", "samples_per_s"),
    Column("share of the ideal", "share_of_ideal", ".3f"),
    Column("× the speed without balancing", "times_off", ".2f"),
)
_STRATEGIES = (
    _NAME,
    Column("workers", "workers"),
    Column("test accuracy", "test_accuracy", ".4f"),
    Column("points from one process", "points", "+.2f"),
    Column("samples/s", "samples_per_s"),
    Column("megabytes sent", "bytes_sent", ",.2f", 1e-6),
    Column("mean staleness", "staleness_mean", ".2f"),
)
_MIXES = (
    "The mix `1:3` has two workers, of which the second is three times slower; in `1:1→3` the second becomes "
    "three times slower during the run. Slow workers are emulated (`--slowdown`). `off` does not balance, "
    "`epoch` balances after each epoch, and `steps` every few steps. The ideal is the sum of the speeds that "
    "the workers reach alone."
)

SECTIONS = (
    Section(
        "prepare",
        "Prepare",
        (
            "The same file and the same work: clean, count, keep the 30,000 most frequent words, write their ids. "
            "`tenor-2` has two workers and `polars` uses both cores; `pandas` gets only 50 MB. `wc` is "
            "`wc -w`, which counts words and does nothing else."
        ),
        "tenor bench prepare --rows tenor-1,tenor-2,pandas,polars,wc --repeats 3 --out benchmarks/prepare.json",
        (
            _NAME,
            Column("MB read", "megabytes"),
            Column("MB/s", "mb_per_s", ".1f"),
            Column("× `wc -w`", "of_wc", ".2f"),
            Column("seconds to start", "startup_s", ".2f"),
        ),
        "mb_per_s",
        "MB/s",
    ),
    Section(
        "train",
        "Train, beside plain PyTorch",
        (
            "An LSTM (vectors of 100, state of 128, 30,000 words) on generated reviews. `ddp-2` is plain PyTorch "
            "with DistributedDataParallel and padded batches. `two-alone` is two independent runs side by side, "
            "an upper bound for two workers. `course-small` is the small configuration of a course project "
            "(10,000 words, two layers of 32), and `tenor-small` the same model in Tenor. The figures are rates "
            "of training, not times to an accuracy: after these two epochs plain DDP is ahead in validation "
            "accuracy at batch 256 and behind at batch 64."
        ),
        "tenor bench train --rows tenor-1,tenor-2,two-alone,ddp-2,course-small,tenor-small --repeats 3 --warmups 0 "
        "--epochs 2 --out benchmarks/train.json",
        (
            _NAME,
            Column("batch", "batch_size"),
            Column("workers", "workers"),
            Column("samples/s", "samples_per_s"),
            Column("× one worker", "speed_up", ".2f"),
            Column("× `two-alone`", "over_alone", ".2f"),
            Column("× `ddp-2`", "over_ddp", ".2f"),
            Column("× `course-small`", "over_course", ".2f"),
            Column("share of matrix-multiply rate", "matmul_share", ".2f"),
            Column("validation accuracy", "valid_accuracy", ".3f"),
        ),
        "samples_per_s",
        "samples/s",
        lambda row: "samples_per_s" in row,
        _with_batch,
    ),
    Section(
        "scaling",
        "Scaling",
        (
            "`strong` divides the same work among more workers; `weak` gives every worker as much work as one worker "
            "alone. Every worker has one thread. The machine was busy with other work, from which `chrt -r 1` protects "
            "a run. See [scaling experiments](reference/scaling.md)."
        ),
        "tenor bench scaling --workers 1,2 --repeats 3 --out benchmarks/scaling.json",
        (
            _NAME,
            Column("workers", "workers"),
            Column("reviews/s", "samples_per_s"),
            Column("speed-up", "speed_up", ".2f"),
            Column("efficiency", "efficiency", ".2f"),
            Column("seconds to start", "startup_s", ".2f"),
        ),
        "efficiency",
        "efficiency",
        lambda row: row.get("efficiency") is not None,
    ),
    Section(
        "plan-scores",
        "Plans beside measurements",
        (
            "Steps with two workers, predicted from a run of one worker (mixes: from two equal workers) before they "
            "were measured. `1gbit,1ms` are test hosts with that network between them. Errors are medians of the "
            "repeats; `inside` counts the repeats inside their intervals. The machine was busy with other work, from "
            "which `chrt -r 1` protects a run. See [how a plan is "
            "computed](reference/planning.md)."
        ),
        "python tools/plan_scores.py --out benchmarks/plan-scores.json",
        (
            _NAME,
            Column("predicted ms", "predicted_ms", ".2f"),
            Column("from", "low_ms", ".2f"),
            Column("to", "high_ms", ".2f"),
            Column("measured ms", "measured_ms", ".2f"),
            Column("error in %", "error", "+.1f", 100),
            Column("inside", "inside"),
            Column("repeats", "repeats"),
            Column("error of bytes in %", "byte_error", "+.1f", 100),
        ),
        "measured_ms",
        "measured ms of a step",
    ),
    Section(
        "balance",
        "Workers of different speed",
        _MIXES,
        "tenor bench balance --rows 1:3,1:2 --repeats 2 --out benchmarks/balance.json",
        _BALANCE,
        "share_of_ideal",
        "share of the ideal",
    ),
    Section(
        "balance-change",
        "Workers whose speed changes, equal workers, three workers",
        "One repeat. With three workers on two cores, two of them share a core.",
        'tenor bench balance --rows "1:1→3,1:1,2:2:6" --repeats 1 --out benchmarks/balance-change.json',
        _BALANCE,
        "share_of_ideal",
        "share of the ideal",
    ),
    Section(
        "large-batch",
        "Large batches",
        (
            "The learning rate was chosen for batch 32. `x8` and `x16` have 8 and 16 times that batch and the "
            "scaled rate; `…-without` keep the rate. See [train with large batches](how-to/large-batches.md)."
        ),
        "tenor bench large-batch --out benchmarks/large-batch.json",
        (
            _NAME,
            Column("batch", "batch_size"),
            Column("mean validation accuracy", "mean_accuracy", ".4f"),
            Column("points from batch 32", "points", "+.2f"),
        ),
        "valid_accuracy",
        "validation accuracy",
    ),
    Section(
        "strategies-reviews",
        "Strategies on reviews",
        (
            "A small LSTM on the demo's reviews, three epochs, paired seeds. Points are of validation accuracy. "
            "See [strategies](reference/strategies.md)."
        ),
        "tenor bench strategies --task reviews --workers 2 --epochs 3 --repeats 3 --out "
        "benchmarks/strategies-reviews.json",
        _STRATEGIES,
        "samples_per_s",
        "samples/s",
    ),
    Section(
        "strategies-points",
        "Strategies on points",
        (
            "The small dense network on four spirals, 100 epochs, one seed. The machine was busy with other work: "
            "compare accuracies only. The best possible accuracy is 0.972."
        ),
        "tenor bench strategies --task points --rows single,local-sgd,diloco,hogwild,async,async-free --workers 2,4,8 "
        "--epochs 100 --repeats 1 --out benchmarks/strategies-points.json",
        tuple(column for column in _STRATEGIES if column.key not in ("points", "samples_per_s")),
        "test_accuracy",
        "test accuracy",
        lambda row: row["strategy"] != "original",
    ),
    Section(
        "busy",
        "Beside a busy process",
        (
            "How much of its speed Tenor keeps while another process computes on the same two cores. `…-spinning` "
            "waits as the OpenMP library does by default. See [why threads "
            "sleep](decisions/0012-threads-that-sleep.md)."
        ),
        "tenor bench busy --workers 1,2 --repeats 6 --warmups 1 --out benchmarks/busy.json",
        (
            _NAME,
            Column("workers", "workers"),
            Column("beside", "beside"),
            Column("reviews/s", "reviews_per_s"),
            Column("share of the quiet speed", "kept", ".2f"),
        ),
        "reviews_per_s",
        "reviews/s",
    ),
)


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
_OTHERS = ("pandas", "polars", "wc", "ddp-2", "course-small")  # rows that are not Tenor


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
