"""Refuses a model that cannot fit, before its weights are allocated."""

from __future__ import annotations

import math
from pathlib import Path

from tenor.environment import memory_bytes
from tenor.errors import RunError, UsageError
from tenor.models.arrays import MOST_BYTES
from tenor.models.spec import ModelSpec, weight_shapes

BYTES = 4  # of a weight
MOST_GROWTH = 4  # how many times larger than its checkpoint a resumed model may be; a checkpoint has all weights


def refuse_too_large(spec: ModelSpec, run: Path | None = None) -> None:
    """Raise an error if a model's weights are larger than the memory, than a run folder may hold, or than those saved.

    Args:
        spec: The architecture.
        run: The run folder if the model continues its training. The folder may come from a stranger.

    Raises:
        UsageError: The machine has less memory, or no version could load the weights.
        RunError: The checkpoint of the run is that of a much smaller model.
    """
    size = BYTES * sum(map(math.prod, weight_shapes(spec).values()))
    if size > (most := min(memory_bytes() or MOST_BYTES, MOST_BYTES)):
        limit = "a run folder may hold" if most == MOST_BYTES else "this machine has"
        what = f"the weights of this model need {size / 2**30:,.1f} GiB, and {limit} {most / 2**30:,.1f} GiB"
        raise UsageError(what, remedy="choose a smaller --hidden, --embedding-dim, --layers or --ngram-bits")
    saved = [] if run is None else list((run / "checkpoints").glob("step-*.safetensors"))
    if saved and size > MOST_GROWTH * sum(file.lstat().st_size for file in saved):
        what = "its checkpoints are those of a much smaller model than its settings describe"
        raise RunError(what, where=run, remedy="train again in another folder")
