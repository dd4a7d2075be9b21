"""What every classifier of the scenario `accuracy` returns, and the choice of settings by validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tenor.bench.peers.classifiers.reviews import LabelledTexts

Chances = NDArray[np.float64]  # (texts,): the probability of positive
T = TypeVar("T")


@dataclass(frozen=True)
class Given:
    """What a classifier learns from: training rows, validation rows to choose settings by, a seed, and limits.

    The texts are those of `reviews.words`.
    """

    train: LabelledTexts
    valid: LabelledTexts
    seed: int
    threads: int
    budget: float = 0.0  # seconds that autotune may take


@dataclass(frozen=True)
class Fitted:
    """A trained classifier."""

    chances: Callable[[list[str]], Chances]  # from texts of `reviews.words`
    seconds: float  # to train the model that was chosen
    choice_seconds: float  # to train and validate the other candidates
    size: int  # bytes
    chosen: str  # the settings that validation chose


@dataclass(frozen=True)
class Candidate(Generic[T]):
    """One trained model among which validation chooses."""

    name: str
    model: T
    accuracy: float  # on the validation rows
    seconds: float


def choose_best(options: Sequence[Any], train: Callable[[Any], tuple[str, T, float]]) -> tuple[Candidate[T], float]:
    """Train one model per option; return the one with the best validation accuracy, and the seconds of the others.

    Args:
        options: The settings to try; the first of several equally good ones wins.
        train: From settings to (a name, the model, its accuracy on the validation rows).
    """
    best: Candidate[T] | None = None
    total = 0.0
    for option in options:
        began = time.perf_counter()
        name, model, accuracy = train(option)
        seconds = time.perf_counter() - began
        total += seconds
        if best is None or accuracy > best.accuracy:
            best = Candidate(name, model, accuracy, seconds)
    assert best is not None
    return best, total - best.seconds


def accuracy_of(chances: Chances, labels: Sequence[int]) -> float:
    """Return the share of labels that the probabilities predict."""
    return float(np.mean((chances > 0.5) == (np.asarray(labels) == 1)))
