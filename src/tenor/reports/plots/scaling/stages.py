"""Plots of a scaling experiment: one per stage, strategy and kind of scaling, in the order of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tenor.bench.scaling_tables import UNTIL, scaling_tables
from tenor.reports.drawing.plot import Plot
from tenor.reports.plots.scaling.overall import scaling
from tenor.reports.values import readable

MOST_PLOTS = 12
_KEPT = (
    "workers",
    "samples_per_s",
    "speed_up",
    "spread",
    "shares_cores",
)  # without words, all rows of a table form one line


def stage_scaling(rows: Sequence[Mapping[str, Any]], cores: float | None) -> list[Plot]:
    """Plot throughput, speed-up and efficiency of each table that has several numbers of workers."""
    found = []
    for table in [one for one in scaling_tables(rows) if one.kind != UNTIL][:MOST_PLOTS]:
        own = [{name: row[name] for name in _KEPT if name in row} for row in table.rows]
        title = readable(table.title)[:120]
        title = title[:1].upper() + title[1:]
        found += [replace(plot, title=title) for plot in scaling(own, cores)]
    return found
