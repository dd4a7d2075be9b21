"""Values in the messages of workers, checked before the server uses them. An invalid value is a `WorkerError`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tenor.training.parameter_server.messages import Array, Message, refused
from tenor.training.profiling.spans import NAMES, Span

MOST = 1 << 53  # whole numbers up to here are exact as floats
LAST_SIGNAL = 64
MOST_SPANS = 1024  # of a push


@dataclass(frozen=True)
class Counts:
    """The numbers that a push carries with its gradients."""

    sequence: int  # of the grant
    loss: float  # may be NaN or infinite: the loop skips such a step
    weight: float
    samples: int
    tokens: int
    padded: int
    saved: int  # bytes; negative if the compressed gradient is longer
    signal: int  # a signal that the worker received, or 0
    spans: tuple[Span, ...] = ()  # what the worker did since its last push, with --profile


def read_counts(values: Mapping[str, Any]) -> Counts:
    """The counts of a push."""
    return Counts(
        sequence=_whole(values, "sequence"),
        loss=_number(values, "loss"),
        weight=_size(values, "weight"),
        samples=_whole(values, "samples"),
        tokens=_whole(values, "tokens"),
        padded=_whole(values, "padded"),
        saved=_whole(values, "saved", least=-MOST),
        signal=_whole(values, "signal", most=LAST_SIGNAL),
        spans=_spans(values.get("spans", [])),
    )


def _spans(value: Any) -> tuple[Span, ...]:
    if not isinstance(value, list) or len(value) > MOST_SPANS:
        raise refused("its 'spans' are not a list")
    return tuple(_span(one) for one in value)


def _span(value: Any) -> Span:
    if not isinstance(value, list) or len(value) != 4 or value[0] not in NAMES:
        raise refused("its 'spans' are not spans")
    fields = dict(zip(Span._fields, value, strict=True))
    start, end = _size(fields, "start"), _size(fields, "end")
    if not start <= end <= MOST:
        raise refused("its 'spans' end before they start")
    return Span(str(value[0]), start, end, _whole(fields, "step"))


def read_rows(message: Message, sizes: Sequence[int]) -> list[Tensor]:
    """The rows that a worker asks for, of tables of these sizes: existing rows, each at most once, in rising order."""
    if len(message.arrays) != len(sizes):
        raise refused("it does not name rows of every table")
    return [_table_rows(array, num_rows) for array, num_rows in zip(message.arrays, sizes, strict=True)]


def _table_rows(array: Array, num_rows: int) -> Tensor:
    if array.ndim != 1 or array.dtype != np.int64:
        raise refused("it does not name rows")
    rows = torch.from_numpy(array.copy())  # received arrays are read-only, about which torch would warn
    if len(rows) and not (rows[0] >= 0 and rows[-1] < num_rows and bool((rows.diff() > 0).all())):
        raise refused("it names rows that the table does not have")
    return rows


def read_text(values: Mapping[str, Any], name: str) -> str:
    """Text without characters that some terminals cannot print."""
    return str(values.get(name, "")).encode("utf-8", "replace").decode()


def _whole(values: Mapping[str, Any], name: str, least: int = 0, most: int = MOST) -> int:
    value = values.get(name)
    if type(value) is not int or not least <= value <= most:
        raise refused(f"its {name!r} is not a count")
    return value


def _number(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    if type(value) is int and abs(value) <= MOST:
        return float(value)
    if type(value) is not float:
        raise refused(f"its {name!r} is not a number")
    return value


def _size(values: Mapping[str, Any], name: str) -> float:
    value = _number(values, name)
    if not math.isfinite(value) or value < 0.0:
        raise refused(f"its {name!r} is negative or not finite")
    return value
