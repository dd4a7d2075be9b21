"""fastText (Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification"): a small grid, and its autotune."""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tenor.bench.peers.classifiers.base import Chances, Fitted, Given, accuracy_of, choose_best
from tenor.bench.peers.classifiers.reviews import LabelledTexts
from tenor.errors import WorkerError

# The ranges of its documentation on text classification, and the dimension of its published classification results
RATES, EPOCHS, DIM = (0.1, 0.25, 0.5, 1.0), (5, 10), 10
GRID = [{"lr": lr, "epoch": e, "wordNgrams": n} for lr, e, n in itertools.product(RATES, EPOCHS, (2, 3))]
SUBWORDS = [
    {"lr": lr, "epoch": e, "wordNgrams": n, "minn": 1, "maxn": longest}
    for lr, e, n, longest in itertools.product((0.1, 0.25, 0.5), (5, 10), (1, 2), (3, 4))
]
POSITIVE = "__label__1"
ATTEMPTS = 3
FAILED = -1.0  # in place of the accuracy of a model that could not be trained


def grid(given: Given, options: Sequence[dict[str, Any]]) -> Fitted:
    """Train with each of the settings, and choose by validation."""
    import fasttext

    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        file = write_lines(given.train, Path(scratch) / "train.txt")
        failed: list[str] = []

        def train(option: dict[str, Any]) -> tuple[str, Any, float]:
            name = " ".join(f"{key}={value:g}" for key, value in option.items())
            try:
                model = fasttext.train_supervised(
                    str(file), dim=DIM, thread=given.threads, seed=given.seed, verbose=0, **option
                )
            except RuntimeError as error:  # "Encountered NaN", which happens with some settings and builds
                print(f"fastText with {name}: {error}", file=sys.stderr)
                failed.append(name)
                return name, None, FAILED
            return name, model, accuracy_of(_chances(model, given.valid.texts), given.valid.labels)

        best, others = choose_best(options, train)
        if best.accuracy == FAILED:
            raise WorkerError("fastText fails with every setting", remedy="omit the row with --rows")
        note = f" ({len(failed)} of {len(options)} settings failed)" if failed else ""
        return _fitted(best.model, best.seconds, others, best.name + note)


def autotune(given: Given) -> Fitted:
    """Let fastText choose its own settings on the validation rows within a number of seconds.

    The training after its choice sometimes ends with NaN. Then it gets another attempt, with another seed.
    """
    import fasttext

    duration = max(1, round(given.budget))
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        train = write_lines(given.train, Path(scratch) / "train.txt")
        valid = write_lines(given.valid, Path(scratch) / "valid.txt")
        tuning = {"autotuneValidationFile": str(valid), "autotuneDuration": duration}
        for attempt in range(ATTEMPTS):
            seed = given.seed + 1000 * attempt
            began = time.perf_counter()
            try:
                model = fasttext.train_supervised(str(train), thread=given.threads, seed=seed, verbose=0, **tuning)
            except RuntimeError as error:
                print(f"fastText's autotune: {error}", file=sys.stderr)
                continue
            return _fitted(model, time.perf_counter() - began, 0.0, f"{duration} s")
    raise WorkerError(f"fastText's autotune fails {ATTEMPTS} times", remedy="omit the row with --rows")


def write_lines(reviews: LabelledTexts, file: Path) -> Path:
    """Write reviews in fastText's format and return the file."""
    lines = (f"__label__{label} {text}\n" for text, label in zip(reviews.texts, reviews.labels, strict=True))
    with file.open("w", encoding="utf-8") as out:
        out.writelines(lines)
    return file


def _fitted(model: Any, seconds: float, others: float, chosen: str) -> Fitted:
    with tempfile.NamedTemporaryFile(prefix="tenor-bench-") as file:
        model.save_model(file.name)
        size = Path(file.name).stat().st_size
    return Fitted(lambda texts: _chances(model, texts), seconds, others, size, chosen)


def _chances(model: Any, texts: list[str]) -> Chances:
    """The probability of positive; fastText's own numbers may exceed 1 by rounding."""
    labels, chances = model.predict(texts)
    positive = [c[0] if name[0] == POSITIVE else 1 - c[0] for name, c in zip(labels, chances, strict=True)]
    return np.clip(np.asarray(positive, np.float64), 0.0, 1.0)
