"""The model card: what a run is, what it was trained on, how good it is beside guessing, and how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_METRICS = {"accuracy": "accuracy", "f1_macro": "macro-F1", "f1_weighted": "weighted F1", "auc": "AUC"}


def model_card(config: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Markdown, from the run's config and result."""
    settings = config["settings"]
    title, facts, use = _points(config) if settings["task"] == "points" else _reviews(config)
    return f"""# {title}

{facts}
- trained {result["epochs"]} epoch(s), {result["steps"]:,} steps of {settings["batch_size"]} {settings["task"]},
  {settings["optimizer"]} at {settings["lr"]:g}, seed {settings["seed"]}; weights of epoch {result["kept_epoch"]}
- final weights `{result["weights_sha256"]}`

## Metrics

{_table(result)}

The majority baseline always says the most frequent class. {use}"""


def _reviews(config: Mapping[str, Any]) -> tuple[str, str, str]:
    """Title, facts, and what the figures hold for with how to use the model."""
    model = config["model"]
    directions = "both directions" if model["bidirectional"] else "one direction"
    facts = f"""A recurrent classifier of reviews, trained with tenor.

- cell {model["cell"]}, {model["layers"]} layer(s) of {model["hidden"]}, {directions}, {model["pooling"]} pooling
- {model["vocab_size"]:,} words of width {model["embedding_dim"]}; the first {config["max_length"]} tokens of a review
- data `{config["data_sha256"]}`"""
    use = """Figures hold for reviews like those of the data: other
products, times, lengths or languages want a measurement of their own.

## Use

    import tenor
    tenor.load("path/to/this/folder").predict(["not bad at all"])

or `tenor predict path/to/this/folder reviews.txt`. No file here is executed when it is loaded: weights are safetensors,
the rest is JSON.
"""
    return f"Sentiment model: {model['cell']}, {' / '.join(config['classes'])}", facts, use


def _points(config: Mapping[str, Any]) -> tuple[str, str, str]:
    facts = f"""A dense network with one hidden layer of {config["model"]["hidden"]}, trained with tenor to tell
points on {len(config["classes"])} interleaved spirals apart.
"""
    use = f"The best possible classifier reaches an accuracy of\n{config['bayes_accuracy']:.4f}.\n"
    return f"Points on {len(config['classes'])} spirals", facts, use


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
