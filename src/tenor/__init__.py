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
    from tenor.preparation.job import prepare
    from tenor.preparation.result import PrepareResult
    from tenor.preparation.settings import PrepareSettings

_HOMES = {
    "GenerateResult": "tenor.corpus.synthetic",
    "GenerateSettings": "tenor.corpus.generation",
    "PrepareResult": "tenor.preparation.result",
    "PrepareSettings": "tenor.preparation.settings",
    "TenorError": "tenor.errors",
    "generate": "tenor.corpus.synthetic",
    "prepare": "tenor.preparation.job",
}

__all__ = [
    "GenerateResult",
    "GenerateSettings",
    "PrepareResult",
    "PrepareSettings",
    "TenorError",
    "__version__",
    "generate",
    "prepare",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenor' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
