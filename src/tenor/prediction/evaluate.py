"""`tenor.evaluate`: a run's metrics on prepared data or on a raw file, always beside the majority baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.labels import LabelRule
from tenor.errors import StoreError
from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.prediction.model import SentimentModel, load
from tenor.prediction.settings import EvaluateSettings
from tenor.preparation.labelled import read_labelled
from tenor.preparation.settings import PrepareSettings
from tenor.progress import SILENT, Progress
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split

BLOCK = 4096

Block = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]  # tokens, lengths, labels


def evaluate(
    run: str | Path, data: str | Path, settings: EvaluateSettings | None = None, progress: Progress = SILENT
) -> Metrics:
    """Measure a run on a split of prepared data, or on every labelled row of a raw file.

    >>> tenor.evaluate("run", "data").accuracy  # doctest: +SKIP
    """
    settings = settings or EvaluateSettings()
    model, source = load(run), Path(data)
    blocks = _prepared(model, source, settings.split) if source.is_dir() else _raw(model, str(data), settings)
    scores = Scores()
    progress.start("evaluate", None, "row")
    try:
        for tokens, lengths, labels in blocks:
            chances = model.score_tokens(tokens, lengths)
            scores.add(chances[:, 1] if len(model.classes) == 2 else chances, labels)
            progress.advance(len(labels))
    finally:
        progress.finish()
    if not len(scores):
        raise StoreError("has no rows to evaluate on", where=source, remedy="give data with labelled rows")
    return measure(scores, model.classes)


def _prepared(model: SentimentModel, data: Path, name: str) -> Iterator[Block]:
    manifest = Manifest.load(data)
    if manifest.vocab_sha256 != model.config["vocab_sha256"]:
        remedy = "evaluate on the raw file, or prepare it with --vocab of the data this run was trained on"
        raise StoreError("was prepared with another vocabulary than the run's", where=data, remedy=remedy)
    if (list(manifest.classes), manifest.tokeniser) != (list(model.classes), model.config["tokeniser"]):
        remedy = "evaluate on the raw file, or prepare it with the label and word options of the run's data"
        raise StoreError(
            "was prepared with other classes or another tokeniser than the run's", where=data, remedy=remedy
        )
    if name not in manifest.splits:
        raise StoreError(f"has no split {name!r}", where=data, remedy=f"choose one of {', '.join(manifest.splits)}")
    with open_split(data, name) as split:
        for start in range(0, len(split), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(split)))
            yield *split.gather(rows), split.labels[rows]


def _raw(model: SentimentModel, source: str, settings: EvaluateSettings) -> Iterator[Block]:
    given = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name != "split"}
    reading = PrepareSettings(**{name: value for name, value in given.items() if value is not None})
    is_asked = any(given[name] is not None for name in ("labels", "negative", "positive"))
    known = None if is_asked else model.config.get("labels")  # runs of older versions do not tell
    for texts, labels in read_labelled([source], reading, model.classes, known and LabelRule.from_dict(known)):
        yield *model.encoder(texts), labels
