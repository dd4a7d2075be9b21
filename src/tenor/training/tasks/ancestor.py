"""The weights of a finished run from which another run starts (`--from`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from tenor.errors import RunError
from tenor.models.classifier import ReviewNetwork
from tenor.models.spec import ModelSpec, weight_shapes
from tenor.models.weights import read_weights, weights_sha256
from tenor.store.trusted import read_json

RESULT_BYTES = 16 << 20


class Ancestor:
    """The weights of a run, all on the processor, and the hashes that say which ones they are.

    Attributes:
        weights: By their names in the model's `state_dict`.
        record: What config.json and the model card say about the run.
    """

    def __init__(self, run: Path, spec: ModelSpec) -> None:
        """Read the weights; RunError if they do not fit `spec` or the run is not finished."""
        try:
            final = read_json(run / "result.json", RESULT_BYTES, RunError).get("weights_sha256")
            self.weights: Mapping[str, Tensor] = read_weights(run / "model.safetensors", weight_shapes(spec))
        except FileNotFoundError as error:
            remedy = "finish it with `tenor train … --resume`, or give another run"
            raise RunError("is not finished, so no run can start from it", where=run, remedy=remedy) from error
        self.record = {"weights_sha256": str(final), "model_sha256": weights_sha256(self.weights)}

    def start(self, model: ReviewNetwork) -> None:
        """Give these weights to a model."""
        with torch.no_grad():
            for name, weight in model.state_dict().items():
                weight.copy_(self.weights[name])
