"""What `tenor train` chooses where the user gives no option: by the preset, the task and the data. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tenor.settings import CHOSEN
from tenor.store.manifest import Manifest
from tenor.training.settings import NO_VECTORS, OWN_VECTORS, TrainSettings


@dataclass(frozen=True)
class DataFacts:
    """What a recipe looks at."""

    rows: int  # in the training split
    tokens: int  # of these rows
    has_characters: bool = False  # whether tokens are characters instead of words

    @classmethod
    def of(cls, manifest: Manifest) -> DataFacts:
        train = manifest.splits["train"]
        return cls(train.rows, train.tokens, manifest.tokeniser.get("units") == "characters")


WIDE = {"ngrams": 3, "wide_lr": 1.0}
CHARACTER_NGRAM = 5  # characters of the longest n-gram: about as long as a word and its ending
CONV = {
    **{"cell": "conv", "hidden": 256, "layers": 1, "bidirectional": False, "pooling": "max"},
    **{"dropout": 0.5, "input_dropout": 0.0},
}
RECURRENT = {
    **{"hidden": 64, "layers": 1, "bidirectional": True, "pooling": "max-mean"},
    **{"dropout": 0.4, "input_dropout": 0.4},
}
DEEP = {"embedding_dim": 100, "word_dropout": 0.0, "embeddings": OWN_VECTORS, "lr": 2e-3}
OTHER_TASKS: dict[str, Any] = {
    **{**WIDE, **DEEP, **CONV, "model": "wide-deep", "embeddings": NO_VECTORS},
    **{"epochs": 3, "batch_size": 64, "hidden": 128},
}


def complete(settings: TrainSettings, facts: DataFacts | None) -> TrainSettings:
    """The settings with a value for everything that the user did not choose.

    Args:
        settings: The settings of the user.
        facts: The data; None for a task that has no prepared data.
    """
    values = OTHER_TASKS if facts is None else _for_reviews(settings, facts)
    return replace(settings, **{name: value for name, value in values.items() if getattr(settings, name) is CHOSEN})


def _for_reviews(settings: TrainSettings, facts: DataFacts) -> dict[str, Any]:
    model = settings.model or ("wide" if settings.preset == "fast" else "wide-deep")
    values: dict[str, Any] = {**WIDE, **DEEP, "model": model, "batch_size": choose_batch(facts.rows)}
    if facts.has_characters:
        values["ngrams"] = CHARACTER_NGRAM
    cell = settings.cell or ("gru" if settings.preset == "best" else "conv")
    values |= {**(CONV if cell == "conv" else RECURRENT), "cell": cell}
    if model == "wide":
        values["embeddings"] = NO_VECTORS
    values["epochs"] = choose_epochs(facts.rows, model)
    return values


def choose_batch(rows: int) -> int:
    """A power of two from 16 to 256: about 500 steps per epoch."""
    return min(max(1 << (max(rows, 1) // 500).bit_length(), 16), 256)


def choose_epochs(rows: int, model: str) -> int:
    """Enough steps for few rows, and not too many for millions."""
    enough = 3 if model == "wide" else 4
    return max(enough, min(30, 60_000 // max(rows, 1))) if rows < 20_000 else enough
