"""Results in words and tables that more than one command prints."""

from __future__ import annotations

from typing import Any

from tenor.cli.console import table


def metrics_table(metrics: dict[str, Any]) -> str:
    """Each figure beside what always guessing the most frequent class would get."""
    if not metrics:
        return "no rows to measure on"
    baseline = metrics["majority_baseline"]
    names = {"accuracy": "accuracy", "f1_macro": "macro-F1", "f1_weighted": "weighted F1", "auc": "AUC"}
    rows = [[title, metrics[name], baseline[name]] for name, title in names.items()]
    return table([f"{metrics['rows']:,} rows", "model", "majority baseline"], rows)
