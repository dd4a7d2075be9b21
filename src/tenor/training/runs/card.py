"""The model card of a run: model, data, metrics beside the majority baseline, and how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenor.training.tasks.base import CardText

_METRICS = {"accuracy": "accuracy", "f1_macro": "macro-F1", "f1_weighted": "weighted F1", "auc": "AUC"}


def model_card(card: CardText, settings: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """The model card in Markdown, from the texts of the task and the settings and result of the run."""
    return f"""# {card.title}

{card.facts}
- trained {result["epochs"]} epoch(s), {result["steps"]:,} steps of {settings["batch_size"]} {settings["task"]},
  {_rule(settings)}seed {settings["seed"]}; weights of epoch {result["kept_epoch"]}
- final weights `{result["weights_sha256"]}`

## Metrics

{_measured(settings, result)} {card.use}"""


def _rule(settings: Mapping[str, Any]) -> str:
    """The optimizer, unless it trains no part of the model."""
    if settings["task"] == "reviews" and settings["model"] == "wide":
        return ""
    return f"{settings['optimizer']} at {settings['lr']:g}, "


def _measured(settings: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if result.get("valid") or result.get("test"):
        return f"{_table(result)}\n\nThe majority baseline always predicts the most frequent class."
    if settings.get("all_rows"):
        return """The model has learned from all rows, so none is left to measure it on. `rehearsal/README.md` has
the figures of a model that was trained in the same way on the training rows alone."""
    return "The model was not measured, because its data has neither validation nor test rows."


def _table(result: Mapping[str, Any]) -> str:
    parts = {name: result[name] for name in ("valid", "test") if result.get(name)}
    columns = [title for name in parts for title in (name, f"{name}, majority")]
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for key, title in _METRICS.items():
        cells = [text for part in parts.values() for text in (_cell(part[key]), _cell(part["majority_baseline"][key]))]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    rows = [text for part in parts.values() for text in (f"{part['rows']:,}", "")]
    return "\n".join([*lines, f"| rows | {' | '.join(rows)} |"])


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
