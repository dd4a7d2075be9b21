"""Strict JSON: NaN and infinities become null, because other JSON readers reject them."""

from __future__ import annotations

import json
import math
from typing import Any


def strict_json(value: Any, indent: int | None = None) -> str:
    """The JSON text of a value, in a form that every JSON reader accepts.

    >>> strict_json({"loss": float("nan"), "step": 1})
    '{"loss": null, "step": 1}'
    """
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
