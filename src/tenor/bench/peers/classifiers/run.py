"""Trains and times one classifier: `python -m tenor.bench.peers.classifiers.run JOB`.

JOB is a JSON object with `method`, `folder` (the reviews), `out` (a file for the probabilities of the test reviews),
`seed`, `threads` and `budget`. The method `tenor` trains nothing: it loads the run folder `run`. Standard output gets
one JSON object with the figures.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tenor.bench.peers.classifiers import fast_text, linear
from tenor.bench.peers.classifiers.base import Chances, Fitted, Given
from tenor.bench.peers.classifiers.reviews import LabelledTexts, read_reviews, words

METHODS: dict[str, Callable[[Given], Fitted]] = {
    "fasttext": functools.partial(fast_text.grid, options=fast_text.GRID),
    "fasttext-autotune": fast_text.autotune,
    "fasttext-subwords": functools.partial(fast_text.grid, options=fast_text.SUBWORDS),
    "nbsvm-2": functools.partial(linear.nbsvm, longest=2),
    "nbsvm-3": functools.partial(linear.nbsvm, longest=3),
    "tfidf": linear.tfidf,
    "majority": linear.majority,
}
WARM_UP = 2000  # texts; so many that compiled code is loaded before the measurement


def main() -> None:
    job = json.loads(sys.argv[1])
    test = read_reviews(Path(job["folder"], "test.jsonl"))
    figures = speed_of_run(job["run"], test.texts) if job["method"] == "tenor" else run_method(job, test.texts)
    print(json.dumps(figures))


def run_method(job: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """Train one of METHODS, and write what it says about the texts to the file `out`."""
    began = time.perf_counter()
    train, valid = (_in_words(read_reviews(Path(job["folder"], f"{name}.jsonl"))) for name in ("train", "valid"))
    prepared = time.perf_counter() - began
    fitted = METHODS[job["method"]](Given(train, valid, job["seed"], job["threads"], job["budget"]))
    chances, rate = timed(lambda some: fitted.chances([words(text) for text in some]), texts)
    np.save(job["out"], chances, allow_pickle=False)
    return {
        "seconds": fitted.seconds,
        "choice_seconds": fitted.choice_seconds,
        "prepare_seconds": prepared,
        "size_mb": fitted.size / 1e6,
        "reviews_per_s": rate,
        "chosen": fitted.chosen,
    }


def speed_of_run(run: str, texts: list[str]) -> dict[str, float]:
    """How many raw texts a run predicts per second, with one thread."""
    import torch

    from tenor.runtime.model import load

    torch.set_num_threads(1)
    model = load(run)
    model.threads = 1
    return {"reviews_per_s": timed(lambda some: model.probabilities(some)[:, 1].astype(np.float64), texts)[1]}


def timed(predict: Callable[[list[str]], Chances], texts: list[str]) -> tuple[Chances, float]:
    """Return what a function says about the texts, and texts per second."""
    predict(texts[:WARM_UP])
    began = time.perf_counter()
    chances = predict(texts)
    return chances, len(texts) / (time.perf_counter() - began)


def _in_words(reviews: LabelledTexts) -> LabelledTexts:
    return LabelledTexts([words(text) for text in reviews.texts], reviews.labels)


if __name__ == "__main__":
    main()
