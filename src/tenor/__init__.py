"""Tenor: raw reviews to a sentiment model you can trust, on one laptop or a cluster.

The public names are loaded on first use, so that `import tenor` and `tenor --help` stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tenor.corpus.generation import GenerateSettings
    from tenor.corpus.synthetic import GenerateResult, generate
    from tenor.errors import TenorError
    from tenor.evaluation.metrics import Metrics
    from tenor.prediction.evaluate import evaluate
    from tenor.prediction.many import predict
    from tenor.prediction.model import Prediction, SentimentModel, load
    from tenor.prediction.settings import EvaluateSettings, PredictSettings
    from tenor.preparation.job import prepare
    from tenor.preparation.result import PrepareResult
    from tenor.preparation.settings import PrepareSettings
    from tenor.training.launch import TrainResult, train
    from tenor.training.settings import TrainSettings

_HOMES = {
    "EvaluateSettings": "tenor.prediction.settings",
    "GenerateResult": "tenor.corpus.synthetic",
    "GenerateSettings": "tenor.corpus.generation",
    "Metrics": "tenor.evaluation.metrics",
    "PredictSettings": "tenor.prediction.settings",
    "Prediction": "tenor.prediction.model",
    "PrepareResult": "tenor.preparation.result",
    "PrepareSettings": "tenor.preparation.settings",
    "SentimentModel": "tenor.prediction.model",
    "TenorError": "tenor.errors",
    "TrainResult": "tenor.training.launch",
    "TrainSettings": "tenor.training.settings",
    "evaluate": "tenor.prediction.evaluate",
    "generate": "tenor.corpus.synthetic",
    "load": "tenor.prediction.model",
    "predict": "tenor.prediction.many",
    "prepare": "tenor.preparation.job",
    "train": "tenor.training.launch",
}

__all__ = [
    "EvaluateSettings",
    "GenerateResult",
    "GenerateSettings",
    "Metrics",
    "PredictSettings",
    "Prediction",
    "PrepareResult",
    "PrepareSettings",
    "SentimentModel",
    "TenorError",
    "TrainResult",
    "TrainSettings",
    "__version__",
    "evaluate",
    "generate",
    "load",
    "predict",
    "prepare",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenor' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
