"""The architecture of a run's model, from its config.json. The file may come from a stranger, so it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from tenor.models.deep.cells import CELLS
from tenor.models.limits import (
    MAX_BITS,
    MAX_CHARACTERS,
    MAX_CLASSES,
    MAX_LAYERS,
    MAX_NGRAM,
    MAX_WIDTH,
    MAX_WINDOW,
    MAX_WORDS,
    MIN_BITS,
)
from tenor.models.spec import POOLING_WIDTHS, DeepSpec, ModelSpec, WideSpec
from tenor.training.runs.config import refuse_unknown

INT64 = (1 << 63) - 1
_WIDE_RANGES = {"bits": (MIN_BITS, MAX_BITS), "longest": (1, MAX_NGRAM), "characters": (0, MAX_CHARACTERS)}
_DEEP_RANGES = {
    "vocab_size": (2, MAX_WORDS),
    "embedding_dim": (1, MAX_WIDTH),
    "hidden": (1, MAX_WIDTH),
    "layers": (1, MAX_LAYERS),
    "window": (1, MAX_WINDOW),
    "length": (1, INT64),
}

T = TypeVar("T")


def read_spec(config: Mapping[str, Any], folder: Path) -> ModelSpec:
    """The architecture; ValueError if no version of Tenor has written these values.

    Args:
        config: The content of config.json.
        folder: The run folder, for messages.
    """
    values = read_object(config, "model")
    refuse_unknown(values, [field.name for field in fields(ModelSpec)], "model", folder)
    wide = _part(values, "wide", WideSpec, _WIDE_RANGES, folder)
    deep = _part(values, "deep", DeepSpec, _DEEP_RANGES, folder)
    if wide is None and deep is None:
        raise ValueError("'model' has neither a wide nor a deep part")
    if deep is not None:
        _check_deep(deep)
    return ModelSpec(read_integer(values, "num_classes", 2, MAX_CLASSES), wide, deep)


def _part(
    model: Mapping[str, Any], name: str, kind: type[T], ranges: Mapping[str, tuple[int, int]], folder: Path
) -> T | None:
    """The spec of a part of the model; None if the model has no such part."""
    if model.get(name) is None:
        return None
    values, known = read_object(model, name), fields(kind)  # type: ignore[arg-type]
    refuse_unknown(values, [field.name for field in known], name, folder)
    for field in known:
        if field.default is MISSING and field.name not in values:
            raise ValueError(f"{name!r} has no {field.name}")
    spec = kind(**values)
    for number, (least, most) in ranges.items():
        read_integer(vars(spec), number, least, most)
    return spec


def _check_deep(spec: DeepSpec) -> None:
    for name, choices in (("cell", CELLS), ("pooling", POOLING_WIDTHS)):
        if (value := getattr(spec, name)) not in list(choices):
            raise ValueError(f"{name} is {value!r:.40}, not one of {', '.join(choices)}")
    if not isinstance(spec.bidirectional, bool):
        raise ValueError(f"bidirectional is {spec.bidirectional!r:.40}, not true or false")
    for name in ("dropout", "input_dropout"):
        rate = getattr(spec, name)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
            raise ValueError(f"{name} is {rate!r:.40}, not a number from 0 to below 1")


def read_object(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"'{name}' is not an object")
    return value


def read_integer(values: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = values.get(name)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is {value!r:.40}, not a whole number from {least} to {most:,}")
    return value
