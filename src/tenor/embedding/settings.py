"""The settings of `tenor embed`: every field is an option, a TOML key and a Python argument."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tenor.settings import AUTO_WORKERS, Settings, parse_workers, setting, wrong_value

MAX_DIM = 4096
MAX_BUCKETS, MAX_CHARS = 1 << 27, 20
MODEL, TEXT, OPTIMISATION, CHECKPOINTS = "Model", "Text", "Optimisation", "Checkpoints"  # headings of the help
MACHINES = "Several machines"
_AT_MOST = {
    "dim": MAX_DIM,
    "window": 100,
    "negative": 1000,
    "max_chars": MAX_CHARS,
    "buckets": MAX_BUCKETS,
    "seed": (1 << 63) - 1,
}


@dataclass(frozen=True)
class EmbedSettings(Settings):
    """How to train word vectors. Each field is an option of `tenor embed`.

    >>> EmbedSettings(dim=50, workers=2).dim
    50
    """

    model: str = setting(
        "skipgram",
        "Predict each neighbour of a word (skipgram), or the word from its neighbours (cbow).",
        ("skipgram", "cbow"),
        group=MODEL,
    )
    dim: int = setting(100, "Numbers per word vector.", group=MODEL)
    window: int = setting(
        5, "Maximum distance between a word and its neighbours; each window draws a distance up to it.", group=MODEL
    )
    negative: int = setting(
        15,
        "Negative sampling: random words per window, which the model learns to distinguish from real ones.",
        group=OPTIMISATION,
    )
    subwords: bool = setting(
        False,
        "Add the rows of a word's character n-grams to its own row, so that unknown words have vectors, too.",
        group=MODEL,
    )
    min_chars: int = setting(
        3, "With --subwords: characters of the shortest n-gram; a word's start and end count as one.", group=MODEL
    )
    max_chars: int = setting(6, "With --subwords: characters of the longest n-gram.", group=MODEL)
    buckets: int = setting(500_000, "With --subwords: rows that all n-grams share by their hash.", group=MODEL)
    sample: float = setting(
        1e-4, "Words with more than this share of the text are left out at random; 0 keeps all.", group=TEXT
    )
    min_count: int = setting(5, "Ignore words that occur less often than this.", group=TEXT)
    max_words: int = setting(0, "Keep only this many of the most frequent words; 0 keeps all.", group=TEXT)
    epochs: int = setting(5, "Passes over the text.", group=OPTIMISATION)
    lr: float = setting(0.05, "Learning rate at the start; it falls linearly to almost 0.", group=OPTIMISATION)
    workers: int | str = setting(
        AUTO_WORKERS, "Number of worker processes on this machine, or auto for one per core.", group=OPTIMISATION
    )
    seed: int = setting(0, "Seed of the first vectors, the windows and the noise words.", group=OPTIMISATION)
    average_words: int = setting(
        250_000,
        "Words that each worker trains on until the machines average their vectors; rounded to whole blocks of words.",
        group=MACHINES,
    )
    backend: str = setting("auto", "Communication between the machines.", ("auto", "gloo", "mpi"), group=MACHINES)
    timeout: float = setting(1800.0, "Seconds without an answer after which a machine counts as lost.", group=MACHINES)
    checkpoint_seconds: float = setting(60.0, "Seconds between checkpoints.", group=CHECKPOINTS)
    resume: bool = setting(False, "Continue from the checkpoint in --out.", group=CHECKPOINTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            "dim",
            "window",
            "negative",
            "min_chars",
            "buckets",
            "min_count",
            "epochs",
            "lr",
            "average_words",
            "timeout",
            "checkpoint_seconds",
        ):
            if not 0 < getattr(self, name) < math.inf:
                raise wrong_value(name, getattr(self, name), "give a number above 0")
        for name in ("sample", "max_words", "seed"):
            if not 0 <= getattr(self, name) < math.inf:
                raise wrong_value(name, getattr(self, name), "give 0 or a positive number")
        for name, limit in _AT_MOST.items():
            if getattr(self, name) > limit:
                raise wrong_value(name, getattr(self, name), f"give at most {limit:,}")
        if self.max_chars < self.min_chars:
            raise wrong_value("max_chars", self.max_chars, f"give at least --min-chars, which is {self.min_chars}")
        object.__setattr__(self, "workers", parse_workers(self.workers))
