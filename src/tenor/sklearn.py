"""`tenor.sklearn.ReviewClassifier`: a scikit-learn estimator of texts, for pipelines and cross-validation.

It needs the extra `sklearn`. Fitting writes the texts to a temporary folder, prepares and trains there, and keeps the
model in memory.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tenor.errors import MissingExtra, UsageError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.runtime.model import SentimentModel
from tenor.runtime.read_run import read_run
from tenor.runtime.texts import Texts, as_texts
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtra("tenor.sklearn", "sklearn") from None

MOST_CLASSES = 5


class ReviewClassifier(ClassifierMixin, BaseEstimator):
    """Classifies texts with the wide part alone, or with any preset.

    Args:
        preset: `fast` trains in seconds; `default` and `best` are more accurate and slower.
        epochs: Passes over the rows; None lets the preset choose.
        seed: Random seed.
        workers: Worker processes for preparing and training.
        valid_share: Share of the texts on which the probabilities are calibrated.

    Attributes:
        classes_: The labels, in rising order: two to five of them.

    >>> from tenor.sklearn import ReviewClassifier  # doctest: +SKIP
    >>> ReviewClassifier().fit(texts, stars > 3).predict(["not bad at all"])  # doctest: +SKIP
    array([ True])
    """

    def __init__(
        self,
        preset: str = "fast",
        epochs: int | None = None,
        seed: int = 0,
        workers: int = 1,
        valid_share: float = 0.1,
    ) -> None:
        self.preset = preset
        self.epochs = epochs
        self.seed = seed
        self.workers = workers
        self.valid_share = valid_share

    def fit(self, X: Texts, y: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Train on texts and their labels.

        Args:
            X: Texts, as for `SentimentModel.predict`.
            y: One label per text: numbers, words or booleans.

        Raises:
            UsageError: There are fewer than two or more than five labels, or not as many labels as texts.
        """
        texts = as_texts(X)
        rows = texts if isinstance(texts, list) else texts.to_pylist()
        labels = np.asarray(y)
        if len(labels) != len(rows):
            raise UsageError(f"got {len(rows):,} texts and {len(labels):,} labels", remedy="give one label per text")
        check_classification_targets(labels)
        self.classes_, places = np.unique(labels, return_inverse=True)
        if not 2 <= len(self.classes_) <= MOST_CLASSES:
            what = f"ReviewClassifier needs 2 to {MOST_CLASSES} classes, not {len(self.classes_)}"
            raise UsageError(what, remedy="give other labels")
        with tempfile.TemporaryDirectory(prefix="tenor-") as folder:
            self._contents = self._train(rows, places, Path(folder))
        self._model: SentimentModel | None = None
        return self

    def _train(self, texts: list[str], places: NDArray[np.int64], folder: Path) -> Any:
        with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
            for text, place in zip(texts, places.tolist(), strict=True):
                clean = text.encode("utf-8", "replace").decode()
                file.write(json.dumps({"text": clean, "label": str(place + 1)}, ensure_ascii=False) + "\n")
        labels: dict[str, Any] = {"negative": "1", "positive": "2"} if len(self.classes_) == 2 else {"labels": "stars"}
        shares: dict[str, Any] = {"valid_share": self.valid_share, "test_share": 0.0, "dedupe": False}
        reading = PrepareSettings(workers=self.workers, **shares, **labels)
        prepare([folder / "rows.jsonl"], folder / "data", reading, progress=False)
        chosen: dict[str, Any] = {} if self.epochs is None else {"epochs": self.epochs}
        settings = TrainSettings(preset=self.preset, seed=self.seed, workers=self.workers, test=False, **chosen)
        train(folder / "data", folder / "run", settings, progress=False)
        return read_run(folder / "run")

    def predict_proba(self, X: Texts) -> NDArray[np.float32]:  # noqa: N803
        """Compute the probability of each class, (texts, classes), in the order of `classes_`."""
        check_is_fitted(self, "classes_")
        if self._model is None:
            self._model = SentimentModel(self._contents)
        found = self._model.predict_proba(X)[:, : len(self.classes_)]
        shares: NDArray[np.float32] = found / found.sum(axis=1, keepdims=True)  # there may be fewer labels than stars
        return shares

    def predict(self, X: Texts) -> NDArray[Any]:  # noqa: N803
        """Predict the most likely class of each text."""
        best = self.predict_proba(X).argmax(axis=1)  # first, because it checks that the model is fitted
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_model": None} if "_model" in state else state  # a model has locks; its contents are enough

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False, True
        return tags
