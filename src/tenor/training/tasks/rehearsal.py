"""The rehearsal of a run on all rows: a run on the training rows alone, which still has rows to be measured on.

Its validation rows fit the combination of the model's parts and the threshold, and its metrics are what can be expected
of the final model, which has seen more rows.
"""

from __future__ import annotations

import math
from pathlib import Path

from tenor.errors import RunError
from tenor.models.classifier import ReviewNetwork
from tenor.models.weights import read_weights
from tenor.store.trusted import read_json

FOLDER = "rehearsal"  # in the run folder
MAX_BYTES = 16 << 20  # of result.json


def folder_of(run: Path) -> Path:
    """The folder of a run's rehearsal. A link is refused, because it could make the rehearsal write to any folder."""
    folder = run / FOLDER
    if folder.is_symlink():
        raise RunError("is a symbolic link, not a folder", where=folder, remedy="remove the link")
    return folder


def seconds_of(run: Path) -> float:
    """How long the rehearsal of a run has learned, word vectors included; 0 if its result does not say."""
    result = read_json(folder_of(run) / "result.json", MAX_BYTES, RunError)
    values = [result.get(name, 0.0) for name in ("seconds", "vector_seconds")]
    return float(sum(value for value in values if type(value) in (int, float) and 0 <= value < math.inf))


def load_combination(model: ReviewNetwork, run: Path) -> None:
    """Take the combination that the rehearsal of a run has fitted.

    Raises:
        RunError: The rehearsal has no weights, or they are damaged or those of another model.
    """
    file = folder_of(run) / "model.safetensors"
    try:
        found = read_weights(file, {name: tuple(value.shape) for name, value in model.state_dict().items()})
    except FileNotFoundError as error:
        remedy = "remove the folder of the rehearsal, so that it is made again"
        raise RunError("does not exist", where=file, remedy=remedy) from error
    for name, value in model.combination.named_buffers():
        value.copy_(found[f"combination.{name}"])
