"""`tenor.load(run)`: a trained model with all it needs, ready to predict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from tenor.errors import RunError
from tenor.models.classifier import ModelSpec, RecurrentClassifier
from tenor.models.inference import probabilities
from tenor.preparation.encode import Encoder
from tenor.preparation.vocabulary import Vocabulary

BATCH = 256
UNKNOWN = 1


@dataclass(frozen=True)
class Prediction:
    """The likeliest label and its probability."""

    label: str
    probability: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class SentimentModel:
    """A model loaded from a run folder."""

    def __init__(self, model: RecurrentClassifier, encoder: Encoder, config: dict[str, Any]) -> None:
        self.model, self.encoder, self.config = model, encoder, config
        self.classes: tuple[str, ...] = tuple(config["classes"])

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        """One prediction a text, in their order.

        >>> tenor.load("run").predict(["not bad at all"])  # doctest: +SKIP
        [Prediction(label='positive', probability=0.83)]
        """
        return [self._name(row) for row in self.probabilities(texts)]

    def predict_batches(self, batches: Iterable[Sequence[str]]) -> Iterator[Prediction]:
        for texts in batches:
            yield from self.predict(texts)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, classes)."""
        tokens, lengths = self.encoder(texts)
        return self.score_tokens(tokens, lengths)

    def score_tokens(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """Probabilities (rows, classes) of ragged rows of token ids; a row without words reads as one unknown word."""
        ends = np.cumsum(lengths)
        rows = [tokens[end - length : end] if length else _NOTHING for end, length in zip(ends, lengths, strict=True)]
        result = np.empty((len(rows), len(self.classes)), dtype=np.float32)
        order = np.argsort(lengths, kind="stable")  # like lengths together: little padding
        for at in range(0, len(rows), BATCH):
            chosen = order[at : at + BATCH]
            flat = np.concatenate([rows[row] for row in chosen])
            scores = probabilities(self.model, flat, np.maximum(lengths[chosen], 1))
            result[chosen] = np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores
        return result

    def _name(self, row: NDArray[np.float32]) -> Prediction:
        best = int(row.argmax())
        return Prediction(self.classes[best], float(row[best]))


_NOTHING = np.array([UNKNOWN], dtype=np.int32)


def load(run: str | Path) -> SentimentModel:
    """Load a run folder; whatever is missing or damaged in it is named."""
    folder = Path(run)
    if not (folder / "config.json").is_file():
        raise RunError(
            "is no run folder (config.json is missing)", where=folder, remedy="give one made by `tenor train`"
        )
    try:
        config = json.loads((folder / "config.json").read_bytes())
        _refuse_other_tasks(config, folder)
        spec = ModelSpec(**config["model"])
        vocabulary = Vocabulary.load(folder / "vocab.json")
        encoder = Encoder(vocabulary, config["tokeniser"], config["max_length"])
        weights = load_tensors((folder / "model.safetensors").read_bytes())
        model = RecurrentClassifier(spec)
        model.to(next(iter(weights.values())).dtype).load_state_dict(weights)
    except FileNotFoundError as error:
        remedy = "finish training it with `tenor train … --resume`, or give another run"
        raise RunError(f"{Path(error.filename).name} is missing", where=folder, remedy=remedy) from error
    except (ValueError, KeyError, TypeError, StopIteration, RuntimeError, SafetensorError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"cannot be loaded ({reason})", where=folder, remedy="train it again") from error
    if vocabulary.sha256 != config["vocab_sha256"]:
        raise RunError("vocab.json is not the one the model was trained with", where=folder, remedy="train it again")
    model.eval()
    return SentimentModel(model, encoder, config)


def _refuse_other_tasks(config: dict[str, Any], folder: Path) -> None:
    task = config.get("settings", {}).get("task", "reviews")
    if task != "reviews":
        remedy = "give a run trained on reviews; the figures of this one are in its result.json"
        raise RunError(f"is a run of the task {task}, which reads no text", where=folder, remedy=remedy)
