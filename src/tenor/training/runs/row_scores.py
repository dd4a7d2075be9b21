"""scores.safetensors: the probabilities and labels of the test rows in their order, to compare runs row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tenor.errors import RunError
from tenor.evaluation.decision import MIDDLE
from tenor.evaluation.scores import Scores
from tenor.store.atomic import write_bytes
from tenor.store.trusted import read_bytes

NAME = "scores.safetensors"
MAX_BYTES = 1 << 30
HEADER_BYTES = 1 << 16  # before the numbers
MAX_CLASSES = 256
_REMEDY = "remove the file, and compare the runs on data that you name with --data"


def write_row_scores(folder: Path, scores: Scores) -> None:
    """Write the scores of a run: 5 bytes per row of two classes."""
    probabilities, labels = scores.arrays()
    threshold = np.array([scores.threshold], np.float32)
    write_bytes(
        folder / NAME, save({"probabilities": probabilities, "labels": labels.astype(np.uint8), "threshold": threshold})
    )


def read_row_scores(folder: Path) -> Scores | None:
    """Read the scores of a run, which may come from an untrusted source.

    Returns:
        The scores; None if the run has none, such as one without test rows.

    Raises:
        RunError: The file is too large, damaged, or holds something else.
    """
    path = folder / NAME

    def check_head(head: bytes) -> None:
        if not 2 <= int.from_bytes(head[:8], "little") <= HEADER_BYTES:
            raise RunError("is not a file of scores", where=path, remedy=_REMEDY)

    try:
        tensors = load(read_bytes(path, MAX_BYTES, RunError, check_head))
    except FileNotFoundError:
        return None
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"is not a file of scores: {error!s:.100}", where=path, remedy=_REMEDY) from None
    chances, labels = tensors.get("probabilities"), tensors.get("labels")
    threshold = tensors.pop("threshold", np.array([MIDDLE], np.float32))  # older files have none
    if chances is None or labels is None or set(tensors) != {"probabilities", "labels"} or threshold.shape != (1,):
        raise RunError("is not a file of scores", where=path, remedy=_REMEDY)
    is_sound = chances.dtype == np.float32 and labels.dtype == np.uint8 and labels.ndim == 1 and chances.ndim in (1, 2)
    if not is_sound or len(chances) != len(labels) or not 1 < (chances.shape[1:] or (2,))[0] <= MAX_CLASSES:
        raise RunError("has probabilities and labels that do not fit each other", where=path, remedy=_REMEDY)
    if threshold.dtype != np.float32 or not 0 <= threshold[0] <= 1:
        raise RunError("has a threshold that is not between 0 and 1", where=path, remedy=_REMEDY)
    if not ((chances >= 0) & (chances <= 1)).all():
        raise RunError("has probabilities that are not between 0 and 1", where=path, remedy=_REMEDY)
    found = Scores(float(threshold[0]))
    found.add(chances, labels)
    return found
