"""Summaries of metrics that several commands print."""

from __future__ import annotations

from typing import Any

from tenor.cli.console import table


def metrics_table(metrics: dict[str, Any], measured_on: str) -> str:
    """A table of the metrics beside those of the majority baseline.

    Args:
        metrics: The metrics; empty if there were no rows.
        measured_on: The rows that were measured, such as `test split` or the name of a file.
    """
    if not metrics:
        return f"{measured_on}: no rows to measure on"
    baseline = metrics["majority_baseline"]
    names = {"accuracy": "accuracy", "f1_macro": "macro-F1", "f1_weighted": "weighted F1", "auc": "AUC"}
    rows = [[title, metrics[name], baseline[name]] for name, title in names.items()]
    if metrics.get("mean_absolute_error") is not None:  # older results have none for the baseline
        rows.append(["mean absolute error", metrics["mean_absolute_error"], baseline.get("mean_absolute_error")])
    shown = table(["", "model", "majority baseline"], rows, decimals=4)
    return f"{measured_on}, {metrics['rows']:,} rows\n\n{shown}\n\n{_more(metrics)}"


def _more(metrics: dict[str, Any]) -> str:
    """Figures that a baseline does not have, in one line."""
    parts = [f"calibration error {metrics['calibration_error']:.4f}"] if "calibration_error" in metrics else []
    if metrics.get("threshold") not in (None, 0.5):
        parts.append(f"decision threshold {metrics['threshold']:.4f}")
    if metrics.get("abstain_below"):
        parts.append(f"{metrics['coverage']:.1%} of the rows answered with at least {metrics['abstain_below']:g}")
        if metrics["covered_accuracy"] is not None:
            parts.append(f"of which {metrics['covered_accuracy']:.4f} right")
    return ", ".join(parts)


def reliability_table(metrics: dict[str, Any]) -> str:
    """A table of how often predictions came true, by the bins of probability behind the calibration error."""
    names = list(metrics["per_class"])
    title = f"probability of {names[1]}" if len(names) == 2 else "probability of the predicted class"
    rows = [
        [f"{one['low']:.2f} to {one['high']:.2f}", one["rows"], one["probability"], one["share"]]
        for one in metrics["reliability"]
    ]
    return table([title, "rows", "mean", "came true"], rows, decimals=3)


def accounting(metrics: dict[str, Any]) -> str:
    """One line that accounts for all rows that were read."""
    parts = [f"{metrics['rows_read']:,} rows read: {metrics['rows']:,} measured"]
    for kind in ("dropped", "rejected"):
        reasons = {reason: rows for reason, rows in metrics[kind].items() if rows}
        details = ", ".join(f"{reason} {rows:,}" for reason, rows in reasons.items())
        parts.append(f"{sum(reasons.values()):,} {kind}" + (f" ({details})" if details else ""))
    return ", ".join(parts)


def behaviour_table(behaviour: dict[str, Any]) -> str:
    """A table of the behaviour tests that pass, by kind, and over all kinds that are not hard."""
    named = [(f"{kind} (hard)" if count["hard"] else kind, count) for kind, count in behaviour["kinds"].items()]
    named.append(("all but hard", behaviour))
    rows = [[name, each["passed"], each["cases"], 100 * each["passed"] / each["cases"]] for name, each in named]
    return table(["behaviour tests", "passed", "cases", "%"], rows, decimals=1)
