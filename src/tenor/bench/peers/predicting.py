"""Other ways to predict the same texts: plain PyTorch with padded batches, and fastText."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.part import initialise
from tenor.models.inference import Inference, as_tensors, padded, to_probabilities
from tenor.models.rows import shortened
from tenor.models.spec import DeepSpec, ModelSpec, weight_shapes
from tenor.models.weights import read_weights
from tenor.preparation.tokeniser.encode import Encoder
from tenor.runtime.combined import with_unknown
from tenor.runtime.read_run import read_run

BATCH = 256
FASTTEXT = {"dim": 100, "wordNgrams": 2, "epoch": 5, "lr": 0.5, "minCount": 2, "bucket": 2_000_000, "verbose": 0}


class PlainTorch:
    """A model in torch's own operations: batches in the order of the texts, padded to their longest review."""

    def __init__(self, encoder: Encoder, network: ReviewNetwork) -> None:
        self.encoder, self.network = encoder, network.eval()
        self._index = network.wide.make_index() if network.wide else None

    @classmethod
    def of_run(cls, run: Path) -> PlainTorch:
        contents = read_run(run)
        network = ReviewNetwork(contents.spec)
        network.load_state_dict(read_weights(run / "model.safetensors", weight_shapes(contents.spec)))
        if network.wide is not None:
            network.wide.characters = contents.characters
        return cls(contents.encoder, network)

    @classmethod
    def first_default(cls, run: Path) -> PlainTorch:
        """The default model of version 0.1, an LSTM of width 128, with the run's vocabulary and random weights."""
        contents = read_run(run)
        deep = DeepSpec(len(contents.encoder.vocabulary), "lstm", 100, 128, pooling="max-mean")
        network = ReviewNetwork(ModelSpec(2, None, deep))
        assert network.deep is not None
        initialise(network.deep, 0)
        network.combination.start()
        return cls(contents.encoder, network)

    @torch.inference_mode()
    def predict(self, texts: Sequence[str]) -> Any:
        found = [self._batch(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return torch.cat(found).numpy()

    def _batch(self, texts: Sequence[str]) -> torch.Tensor:
        tokens, lengths = with_unknown(*self.encoder(texts))
        network, parts = self.network, []
        if network.wide is not None and self._index is not None:
            found = self._index(tokens, lengths)
            ngrams = as_tensors(found, found.buckets[found.ids])
            sums = F.embedding_bag(
                ngrams.ids, network.wide.ngrams.weight, ngrams.starts, mode="sum",
                per_sample_weights=ngrams.weights, include_last_offset=True,
            )  # fmt: skip
            parts.append(sums + network.wide.bias)
        if network.deep is not None:
            parts.append(self._deep(*shortened(tokens, lengths, network.deep.spec.length)))
        logits = torch.stack(parts).float().numpy()
        return torch.from_numpy(to_probabilities(network, logits))

    def _deep(self, tokens: Any, lengths: Any) -> torch.Tensor:
        deep = self.network.deep
        assert deep is not None
        states = deep.forwards[0](deep.embedding(padded(tokens, lengths)))[0]
        sizes = torch.from_numpy(lengths.astype("int64"))
        is_padding = (torch.arange(len(states))[:, None] >= sizes)[:, :, None]
        pooled = states.masked_fill(is_padding, -torch.inf).amax(0)
        if deep.spec.pooling == "max-mean":
            pooled = torch.cat([pooled, states.masked_fill(is_padding, 0.0).sum(0) / sizes[:, None]], 1)
        logits: torch.Tensor = deep.head(pooled)
        return logits


class TorchModel:
    """The torch model of a run as version 0.1 used it, for any cell."""

    def __init__(self, run: Path) -> None:
        plain = PlainTorch.of_run(run)
        self._encoder, self._inference = plain.encoder, Inference(plain.network)
        self._classes = read_run(run).config["classes"]

    def predict(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        found = self._inference.probabilities(*with_unknown(*self._encoder(texts)))
        rows = np.stack([1 - found, found], axis=1) if found.ndim == 1 else found
        return [{"label": self._classes[int(row.argmax())], "probability": float(row.max())} for row in rows]


def has_fasttext() -> bool:
    return importlib.util.find_spec("fasttext") is not None


class FastTextPredictor:
    """fastText with bigrams, trained on the same reviews."""

    def __init__(self, file: Path) -> None:
        import fasttext

        self._model = fasttext.train_supervised(str(file), thread=1, **FASTTEXT)

    def predict(self, texts: Sequence[str]) -> Any:
        return self._model.predict([text.replace("\n", " ") for text in texts])[0]
