"""The model that tasks share: a worker loads it for its first task and keeps it for the next ones."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from tenor.runtime.model import SentimentModel, load


@dataclass(frozen=True)
class ModelRef:
    """Tells a worker which model to load."""

    run: str  # the run folder, or the file of a compact model
    version: int  # when its weights were written, so that a run trained again is loaded again

    @classmethod
    def of(cls, run: str | Path) -> ModelRef:
        """The model that a run folder holds now."""
        folder = Path(run).resolve()
        weights = folder if folder.is_file() else folder / "model.safetensors"
        return cls(str(folder), weights.stat().st_mtime_ns if weights.exists() else 0)


@functools.lru_cache(maxsize=1)
def model_of(ref: ModelRef) -> SentimentModel:
    """Load a model, unless it is the last one that this process loaded."""
    return load(ref.run)
