"""Computes ratios between the rows of scenario `train`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tenor.training.settings import TrainSettings


def add_ratios(rows: Sequence[dict[str, Any]], models: Mapping[str, TrainSettings]) -> None:
    """Add the share of the matrix-multiply rate to each row, and the ratios to its peers to each row of Tenor.

    All ratios are of tokens per second, without padding.
    """
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
            row["seconds_to_target"] = None  # some run did not reach the target
            del row["spread"]["seconds_to_target"]


def _peers(name: str) -> dict[str, str]:
    kind, _, variant = name.partition("-")
    if kind != "tenor":
        return {}
    if variant in ("small", "large"):
        return {"over_course": f"course-{variant}"}
    alone = {"2": "two", "3": "three", "4": "four"}.get(variant, variant)
    return {"speed_up": "tenor-1", "over_alone": f"{alone}-alone", "over_ddp": f"ddp-{variant}"}


def flops_per_token(model: TrainSettings) -> int:
    """Return the operations of the matrix products in the recurrent layers; backward takes twice as many as forward."""
    widths = [model.embedding_dim] + [model.hidden] * (model.layers - 1)
    return sum(6 * 4 * model.hidden * (width + model.hidden) for width in widths)
