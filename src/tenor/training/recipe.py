"""What `tenor train` chooses where the user gives no option: by the preset, the task and the data. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tenor.settings import CHOSEN
from tenor.store.manifest import SPLITS, UNLABELLED, Manifest
from tenor.training.settings import NO_VECTORS, OWN_VECTORS, TrainSettings


@dataclass(frozen=True)
class DataFacts:
    """What a recipe looks at."""

    rows: int  # to train on
    tokens: int  # of these rows
    has_characters: bool = False  # whether tokens are characters instead of words
    unlabelled: int = 0  # tokens of reviews without a rating, from which word vectors learn as well

    @classmethod
    def of(cls, manifest: Manifest, all_rows: bool = False) -> DataFacts:
        splits = [manifest.splits[name] for name in (SPLITS if all_rows else ("train",))]
        units = manifest.tokeniser.get("units")
        more = manifest.splits[UNLABELLED].tokens if UNLABELLED in manifest.splits else 0
        return cls(sum(part.rows for part in splits), sum(part.tokens for part in splits), units == "characters", more)


WIDE = {"ngrams": 3, "characters": 0, "wide_lr": 1.0}
CHARACTER_NGRAM = 5  # characters of the longest n-gram: about as long as a word and its ending
WORD_CHARACTERS = 5  # of the longest n-gram within a word
CONV = {
    **{"cell": "conv", "hidden": 256, "window": 7, "layers": 1, "bidirectional": False, "pooling": "max"},
    **{"dropout": 0.5, "input_dropout": 0.0, "word_dropout": 0.0, "label_smoothing": 0.1},
}
LARGE_CONV = {**CONV, "hidden": 1024, "window": 9, "word_dropout": 0.1}
RECURRENT = {
    **{"hidden": 64, "window": 7, "layers": 1, "bidirectional": True, "pooling": "max-mean"},
    **{"dropout": 0.4, "input_dropout": 0.4, "word_dropout": 0.0, "label_smoothing": 0.0},
}
DEEP: dict[str, Any] = {"embedding_dim": 100, "embeddings": OWN_VECTORS, "lr": 2e-3}
OTHER_TASKS: dict[str, Any] = {
    **{**WIDE, **DEEP, **CONV, "preset": "default", "model": "wide-deep", "embeddings": NO_VECTORS},
    **{"epochs": 3, "batch_size": 64, "hidden": 128, "vector_epochs": 1, "label_smoothing": 0.0},
}

# Rough seconds of one core per token and epoch, which only serve to divide --max-seconds
SECONDS_PER_TOKEN = {"fast": 1e-6, "default": 8e-6, "best": 40e-6}
SECONDS_PER_NUMBER = 2e-8  # of one core, per token and number of its word vector: half a million words of 100 a second
VECTOR_SHARE = 1 / 3  # of --max-seconds that learning word vectors is planned to take
ENOUGH = {"fast": 3, "default": 4, "best": 6}  # epochs for tens of thousands of rows
FINE_TUNING = 0.5  # of the learning rates of a run from scratch: what is learned already should not be lost
MANY_ROWS = 1_000_000  # of which two epochs are enough
VECTOR_WORDS = 20_000_000  # that the word vectors should read


def complete(settings: TrainSettings, facts: DataFacts | None, cores: int = 1) -> TrainSettings:
    """The settings with a value for everything that the user did not choose.

    Args:
        settings: The settings of the user.
        facts: The data; None for a task that has no prepared data.
        cores: How many processors compute, which matters for --max-seconds.

    Returns:
        Settings that are chosen already stay, so completing them again changes nothing.
    """
    values = OTHER_TASKS if facts is None else _for_reviews(settings, facts, cores)
    return replace(settings, **{name: value for name, value in values.items() if getattr(settings, name) is CHOSEN})


def _for_reviews(settings: TrainSettings, facts: DataFacts, cores: int) -> dict[str, Any]:
    limit = settings.max_seconds / 2 if settings.all_rows else settings.max_seconds  # the rehearsal has the other half
    passes = choose_vector_epochs(facts.tokens)
    learns = (settings.embeddings or OWN_VECTORS) == OWN_VECTORS and not settings.from_run
    pass_seconds = vector_seconds(facts, settings.embedding_dim or DEEP["embedding_dim"]) if learns else 0.0
    before = pass_seconds * (settings.vector_epochs or passes)
    preset = settings.preset or choose_preset(limit, facts, cores, before)
    model = settings.model or ("wide" if preset == "fast" else "wide-deep")
    cell = settings.cell or "conv"
    conv = LARGE_CONV if preset == "best" else CONV
    values: dict[str, Any] = {**WIDE, **DEEP, **(conv if cell == "conv" else RECURRENT)}
    values |= {"preset": preset, "model": model, "cell": cell, "batch_size": choose_batch(facts.rows)}
    values |= {"epochs": choose_epochs(facts.rows, preset), "vector_epochs": passes}
    if limit and pass_seconds:
        values["vector_epochs"] = max(1, min(passes, int(VECTOR_SHARE * limit / pass_seconds)))
    if facts.has_characters:
        values["ngrams"] = CHARACTER_NGRAM
    elif preset != "fast":  # they triple the time to train and to predict with the wide part
        values["characters"] = WORD_CHARACTERS
    if model == "wide" or settings.from_run:
        values["embeddings"] = NO_VECTORS
    if settings.from_run:
        values |= {name: FINE_TUNING * values[name] for name in ("lr", "wide_lr")}
    return values


def choose_preset(max_seconds: float, facts: DataFacts, cores: int, before: float = 0.0) -> str:
    """The largest preset for which there is probably time; a shortened `default` still is better than `fast`.

    Args:
        max_seconds: The time limit; 0 for none.
        facts: The data.
        cores: How many processors compute.
        before: Seconds of learning word vectors, which `fast` does not need.
    """
    if not max_seconds:
        return "default"
    seconds = {
        name: choose_epochs(facts.rows, name) * facts.tokens * cost / cores for name, cost in SECONDS_PER_TOKEN.items()
    }
    if seconds["best"] + before <= max_seconds:
        return "best"
    return "default" if seconds["default"] + before <= 2 * max_seconds else "fast"


def vector_seconds(facts: DataFacts, dim: int) -> float:
    """Roughly how long one pass over the words takes that learns their vectors; one process does it."""
    return (facts.tokens + facts.unlabelled) * dim * SECONDS_PER_NUMBER


def choose_batch(rows: int) -> int:
    """A power of two from 16 to 256: about 500 steps per epoch."""
    return min(max(1 << (max(rows, 1) // 500).bit_length(), 16), 256)


def choose_epochs(rows: int, preset: str) -> int:
    """Enough steps for few rows, and not too many for millions."""
    if rows > MANY_ROWS:
        return 2
    enough = ENOUGH[preset]
    return max(enough, min(30, 60_000 // max(rows, 1))) if rows < 20_000 else enough


def choose_vector_epochs(tokens: int) -> int:
    """Word vectors need a certain number of words to learn from; the fewer there are, the more often they are read."""
    return max(1 if tokens > 5 * VECTOR_WORDS else 3, min(20, VECTOR_WORDS // max(tokens, 1)))
