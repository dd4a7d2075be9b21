"""The rehearsal of a run on all rows: a run on the training rows alone, which still has rows to be measured on.

Its validation rows fit the combination of the model's parts and the threshold, and its metrics are what can be expected
of the final model, which has seen more rows.
"""

from __future__ import annotations

from pathlib import Path

from tenor.errors import RunError
from tenor.models.classifier import ReviewNetwork
from tenor.models.weights import read_weights

FOLDER = "rehearsal"  # in the run folder


def folder_of(run: Path) -> Path:
    """The folder of a run's rehearsal; a link could lead to any folder, in which the rehearsal would then go on."""
    folder = run / FOLDER
    if folder.is_symlink():
        raise RunError("is a symbolic link, not a folder", where=folder, remedy="remove the link")
    return folder


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
