"""scores.safetensors: the probabilities and labels of the test rows in their order, to compare runs row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tenor.errors import RunError
from tenor.evaluation.scores import Scores
from tenor.store.atomic import write_bytes
from tenor.store.trusted import read_bytes

NAME = "scores.safetensors"
MAX_BYTES = 1 << 30
MAX_CLASSES = 256
_REMEDY = "remove the file, and compare the runs on data that you name with --data"


def write_row_scores(folder: Path, scores: Scores) -> None:
    """Write the scores of a run: 5 bytes per row of two classes."""
    probabilities, labels = scores.arrays()
    write_bytes(folder / NAME, save({"probabilities": probabilities, "labels": labels.astype(np.uint8)}))


def read_row_scores(folder: Path) -> Scores | None:
    """Read the scores of a run, which may come from an untrusted source.

    Returns:
        The scores; None if the run has none, such as one without test rows.

    Raises:
        RunError: The file is too large, damaged, or holds something else.
    """
    path = folder / NAME
    try:
        tensors = load(read_bytes(path, MAX_BYTES, RunError))
    except FileNotFoundError:
        return None
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"is not a file of scores: {error!s:.100}", where=path, remedy=_REMEDY) from None
    chances, labels = tensors.get("probabilities"), tensors.get("labels")
    if chances is None or labels is None or set(tensors) != {"probabilities", "labels"}:
        raise RunError("is not a file of scores", where=path, remedy=_REMEDY)
    is_sound = chances.dtype == np.float32 and labels.dtype == np.uint8 and labels.ndim == 1 and chances.ndim in (1, 2)
    if not is_sound or len(chances) != len(labels) or not 1 < (chances.shape[1:] or (2,))[0] <= MAX_CLASSES:
        raise RunError("has probabilities and labels that do not fit each other", where=path, remedy=_REMEDY)
    if not ((chances >= 0) & (chances <= 1)).all():
        raise RunError("has probabilities that are not between 0 and 1", where=path, remedy=_REMEDY)
    found = Scores()
    found.add(chances, labels)
    return found
