"""The rehearsal of a run on all rows: a run on the training rows alone, which still has rows to be measured on.

Its validation rows fit the combination of the model's parts and the threshold, and its metrics are what can be expected
of the final model, which has seen more rows.
"""

from __future__ import annotations

from pathlib import Path

from safetensors import safe_open

from tenor.models.combination import Combination

FOLDER = "rehearsal"  # in the run folder


def load_combination(combination: Combination, run: Path) -> None:
    """Take the combination that the rehearsal of a run has fitted."""
    with safe_open(run / FOLDER / "model.safetensors", "pt") as file:
        for name, value in combination.named_buffers():
            value.copy_(file.get_tensor(f"combination.{name}"))
