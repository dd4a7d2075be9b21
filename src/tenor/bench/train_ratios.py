"""What the rows of scenario `train` say about each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tenor.training.settings import TrainSettings


def add_ratios(rows: Sequence[dict[str, Any]], models: Mapping[str, TrainSettings]) -> None:
    """Add each row's share of the matrix-multiply rate, and tenor's rates over those of its peers, in real tokens."""
    roofs = {row["workers"]: row["gflops"] for row in rows if "gflops" in row}
    found = {(row["name"], row.get("batch_size")): row.get("tokens_per_s", 0.0) for row in rows}
    for row in rows:
        if "tokens_per_s" not in row:
            continue
        row["matmul_share"] = row["tokens_per_s"] * flops_per_token(models[row["name"]]) / 1e9 / roofs[row["workers"]]
        for title, peer in _peers(row["name"]).items():
            if rate := found.get((peer, row["batch_size"])):
                row[title] = row["tokens_per_s"] / rate
        if math.inf in row["spread"].get("seconds_to_target", {}).get("values", ()):  # JSON has no infinity
            row["seconds_to_target"] = None  # not reached every time
            del row["spread"]["seconds_to_target"]


def _peers(name: str) -> dict[str, str]:
    kind, _, what = name.partition("-")
    if kind != "tenor":
        return {}
    if what in ("small", "large"):
        return {"over_course": f"course-{what}"}
    alone = {"2": "two", "3": "three", "4": "four"}.get(what, what)
    return {"speed_up": "tenor-1", "over_alone": f"{alone}-alone", "over_ddp": f"ddp-{what}"}


def flops_per_token(model: TrainSettings) -> int:
    """Of the recurrent layers' products, forwards and twice as much backwards; padding does not count as work."""
    widths = [model.embedding_dim] + [model.hidden] * (model.layers - 1)
    return sum(6 * 4 * model.hidden * (width + model.hidden) for width in widths)
