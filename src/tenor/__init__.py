"""Tenor: raw reviews to a sentiment model you can trust, on one laptop or a cluster.

The public names are loaded on first use, so that `import tenor` and `tenor --help` stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tenor.errors import TenorError
    from tenor.prediction.model import Prediction, SentimentModel, load
    from tenor.training.launch import TrainResult, train
    from tenor.training.settings import TrainSettings

_HOMES = {
    "Prediction": "tenor.prediction.model",
    "SentimentModel": "tenor.prediction.model",
    "TenorError": "tenor.errors",
    "TrainResult": "tenor.training.launch",
    "TrainSettings": "tenor.training.settings",
    "load": "tenor.prediction.model",
    "train": "tenor.training.launch",
}

__all__ = [
    "Prediction",
    "SentimentModel",
    "TenorError",
    "TrainResult",
    "TrainSettings",
    "__version__",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenor' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
