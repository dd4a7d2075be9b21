"""Tenor: raw reviews to a sentiment model you can trust, on one laptop or a cluster.

The public names are loaded on first use, so that `import tenor` and `tenor --help` stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tenor.errors import TenorError

_HOMES = {
    "TenorError": "tenor.errors",
}

__all__ = ["TenorError", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenor' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
