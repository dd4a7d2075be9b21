"""`tenor.load`: a trained model with its vocabulary and tokeniser, ready to predict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import RunError
from tenor.evaluation.decision import decide
from tenor.models.classifier import ReviewClassifier
from tenor.models.inference import Inference
from tenor.prediction.read_run import read_run
from tenor.prediction.texts import Texts, as_texts
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, UNKNOWN

BATCH = 256  # rows that the model scores at a time


@dataclass(frozen=True)
class Prediction:
    """The most likely label of one review.

    If `known_words` is 0, the model knows no word of the review, and the label is only a guess.

    Attributes:
        label: Name of the most likely class.
        probability: Probability of that class.
        known_words: Words of the review that are in the model's vocabulary; ! and ? count if they are tokens.
    """

    label: str
    probability: float
    known_words: int

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON values.

        >>> tenor.load("run").predict(["not bad at all"])[0].as_dict()  # doctest: +SKIP
        {'label': 'positive', 'probability': 0.83, 'known_words': 4}
        """
        return asdict(self)


class SentimentModel:
    """A model loaded from a run folder by `tenor.load`.

    Attributes:
        classes: The names of the classes, such as ("negative", "positive").
        config: The content of the run's config.json.

    >>> model = tenor.load("run")  # doctest: +SKIP
    >>> model.predict(["not bad at all"])[0].label  # doctest: +SKIP
    'positive'
    """

    batch_rows = BATCH

    def __init__(self, model: ReviewClassifier, encoder: Encoder, config: dict[str, Any]) -> None:
        self.model, self.encoder, self.config = model, encoder, config
        self._inference = Inference(model)
        self.threshold = float(model.combination.threshold)
        self.classes: tuple[str, ...] = tuple(config["classes"])

    def predict(self, texts: Texts) -> list[Prediction]:
        """Predict the label of each text.

        Args:
            texts: A list, NumPy array, pandas Series or Arrow array of strings. None, NaN and NA count as empty texts,
                so that there is one prediction per row; their `known_words` is 0. If the run's data was prepared with a
                title column, put each title before its text, with a space between.

        Returns:
            One prediction per text, in the same order.

        Raises:
            UsageError: `texts` is a single string, or contains a value that is not a string.
            RunError: The model gives probabilities that are not finite.

        >>> tenor.load("run").predict(["not bad at all"])  # doctest: +SKIP
        [Prediction(label='positive', probability=0.83, known_words=4)]
        """
        tokens, lengths = self.encoder(as_texts(texts))
        row_of = np.repeat(np.arange(len(lengths)), lengths)
        known = np.bincount(row_of[tokens >= FIRST_WORD], minlength=len(lengths))
        rows = self.score_tokens(tokens, lengths)
        return [self._name(row, int(count)) for row, count in zip(rows, known, strict=True)]

    def probabilities(self, texts: Texts) -> NDArray[np.float32]:
        """Compute the probability of each class.

        Args:
            texts: As for `predict`.

        Returns:
            An array of shape (texts, classes), in the order of `classes`.

        Raises:
            UsageError, RunError: As for `predict`.

        >>> tenor.load("run").probabilities(["not bad at all"])  # doctest: +SKIP
        array([[0.17, 0.83]], dtype=float32)
        """
        tokens, lengths = self.encoder(as_texts(texts))
        return self.score_tokens(tokens, lengths)

    def score_tokens(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """Compute the probability of each class from token ids.

        Args:
            tokens: The ids of all rows, one row after another.
            lengths: The number of ids of each row. A row without ids counts as one unknown word.

        Returns:
            An array of shape (rows, classes), in the order of `classes`.

        >>> model = tenor.load("run")  # doctest: +SKIP
        >>> tokens, lengths = model.encoder(["not bad at all", "dull"])  # doctest: +SKIP
        >>> model.score_tokens(tokens, lengths).shape  # doctest: +SKIP
        (2, 2)
        """
        ends = np.cumsum(lengths)
        rows = [tokens[end - length : end] if length else _NO_WORDS for end, length in zip(ends, lengths, strict=True)]
        result = np.empty((len(rows), len(self.classes)), dtype=np.float32)
        order = np.argsort(lengths, kind="stable")  # rows of similar length together, so little padding
        for start in range(0, len(rows), BATCH):
            chosen = order[start : start + BATCH]
            flat = np.concatenate([rows[row] for row in chosen])
            scores = self._inference.probabilities(flat, np.maximum(lengths[chosen], 1))
            result[chosen] = np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores
        if not np.isfinite(result).all():
            raise RunError("the model gives probabilities that are not finite", remedy="train again with a lower --lr")
        return result

    def _name(self, row: NDArray[np.float32], known_words: int) -> Prediction:
        best = int(decide(row[None], self.threshold)[0])
        return Prediction(self.classes[best], float(row[best]), known_words)


_NO_WORDS = np.array([UNKNOWN], dtype=np.int32)


def load(run: str | Path) -> SentimentModel:
    """Load the model of a run folder.

    Args:
        run: A folder made by `tenor train`.

    Returns:
        The model, ready to predict.

    Raises:
        RunError: Something in the folder is missing, damaged or not allowed.

    >>> model = tenor.load("run")  # doctest: +SKIP
    >>> model.classes  # doctest: +SKIP
    ('negative', 'positive')
    """
    return SentimentModel(*read_run(Path(run)))
