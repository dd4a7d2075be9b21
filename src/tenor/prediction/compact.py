"""Make a compact model: keep the n-grams that matter, and store each number in a byte or less.

An n-gram matters as much as it moves the logits of all reviews: the number of training reviews that have it, times what
it adds to a logit. What it adds is stored by the square root of its size, so that small values have the finer steps.
`runtime/compact.py` reads the file.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.models.arrays import Array, pack_arrays
from tenor.models.spec import weight_shapes
from tenor.runtime.compact import FULL, KIND, LEVELS, MIDDLE, MOST_BUCKETS, STEPS, content_hash
from tenor.runtime.read_run import RunContents

SMALLEST = 1 << 12  # numbers of a matrix that is worth a scale per row
_KEPT = ("format", "model", "classes", "labels", "tokeniser", "max_length", "vocab_sha256", "data_sha256", "text")


def choose_ngrams(weights: dict[str, Array], rows_with: NDArray[np.int32] | None, most: int) -> NDArray[np.int64]:
    """The buckets to keep, in rising order.

    Args:
        weights: The weights of the model.
        rows_with: (buckets,): the number of training rows that have each bucket; None if it is not known.
        most: How many to keep; 0 keeps all that have a weight.
    """
    adds = np.abs(weights["wide.importance"].astype(np.float64)[:, None] * weights["wide.ngrams.weight"]).max(axis=1)
    worth = adds if rows_with is None else adds * rows_with
    known = np.flatnonzero(weights["wide.importance"] > 0)
    if not most or most >= len(known):
        return known
    return np.sort(known[np.argsort(-worth[known], kind="stable")[:most]])


def make_compact(contents: RunContents, buckets: NDArray[np.int64] | None) -> bytes:
    """The bytes of the file.

    Args:
        contents: The model.
        buckets: The n-grams to keep; None if it has no wide part.
    """
    spec, weights = contents.spec, contents.weights
    arrays: dict[str, Array] = {"words": _packed("\n".join(contents.encoder.vocabulary.words).encode())}
    if buckets is not None:
        if (1 << spec.wide.bits) > MOST_BUCKETS * max(1, len(buckets)):  # type: ignore[union-attr]
            least = (1 << spec.wide.bits) // MOST_BUCKETS  # type: ignore[union-attr]
            raise UsageError(f"--ngrams cannot be {len(buckets)}", remedy=f"keep at least {least:,} n-grams")
        arrays |= _wide_arrays(weights, buckets)
    for name in weight_shapes(spec):
        if name not in ("wide.importance", "wide.ngrams.weight"):
            arrays |= _matrix_arrays(name, weights[name])
    config = {name: contents.config[name] for name in _KEPT if name in contents.config}
    text = json.dumps({**config, "settings": {"task": "reviews"}}, ensure_ascii=False)
    return pack_arrays(arrays, {"kind": KIND, "config": text, "sha256": content_hash(arrays, text)})


def _wide_arrays(weights: dict[str, Array], buckets: NDArray[np.int64]) -> dict[str, Array]:
    importance = weights["wide.importance"][buckets].astype(np.float64)
    adds = importance[:, None] * weights["wide.ngrams.weight"][buckets]
    low, high, top = importance.min(initial=1.0), importance.max(initial=1e-30), float(np.abs(adds).max(initial=0.0))
    span = max(np.log(high / low), 1e-30)
    counts = np.rint(np.log(importance / low) / span * LEVELS).clip(0, LEVELS)
    steps = np.rint(np.sqrt(np.abs(adds) / (top or 1.0)) * STEPS) * np.sign(adds) + MIDDLE
    return {
        "wide.range": np.array([low, max(low, high), top], np.float32),
        "wide.gaps": _packed(_gaps(buckets)),
        "wide.counts": _packed(counts.astype(np.uint8).tobytes()),
        "wide.adds": _packed(steps.astype(np.uint8).tobytes()),
    }


def _gaps(buckets: NDArray[np.int64]) -> bytes:
    """The distance of each bucket to the one before in bytes; 255 means that the distance continues."""
    gaps = np.diff(buckets, prepend=-1)
    full = gaps // FULL
    stream = np.full(int(full.sum()) + len(gaps), FULL, np.uint8)
    stream[np.cumsum(full + 1) - 1] = gaps % FULL
    return stream.tobytes()


def _matrix_arrays(name: str, matrix: Array) -> dict[str, Array]:
    if matrix.size < SMALLEST or matrix.ndim != 2:
        return {name: matrix.astype(np.float32)}
    scales = np.maximum(np.abs(matrix).max(axis=1), 1e-30) / STEPS
    codes = np.rint(matrix / scales[:, None]) + MIDDLE
    return {f"{name}.codes": codes.astype(np.uint8), f"{name}.scales": scales.astype(np.float32)}


def _packed(data: bytes) -> Array:
    return np.frombuffer(zlib.compress(data, 9), np.uint8)


def recalibrated(weights: dict[str, Array], logits: NDArray[np.float64], labels: NDArray[Any]) -> dict[str, Array]:
    """The weights with a scale and a shift of the logits that fit some rows, as after training. Two classes only.

    Args:
        weights: The weights of the model.
        logits: (rows, 1): what the model gives for the rows.
        labels: (rows,) 0 or 1.
    """
    if logits.shape[1] != 1 or len(set(labels.tolist())) < 2:
        return weights
    inputs = np.stack([logits[:, 0], np.ones(len(logits))], axis=1)
    found = np.array([1.0, 0.0])
    for _ in range(25):  # Newton's method for a logistic regression with two numbers
        chances = 1.0 / (1.0 + np.exp(-np.clip(inputs @ found, -30.0, 30.0)))
        slope = inputs.T @ (chances - labels) + 1e-3 * (found - [1.0, 0.0])
        curve = (inputs * (chances * (1.0 - chances))[:, None]).T @ inputs + 1e-3 * np.eye(2)
        found = found - np.linalg.solve(curve, slope)
    if not (np.isfinite(found).all() and found[0] > 0):
        return weights
    scales, shifts = weights["combination.scales"], weights["combination.shifts"]
    changed = {"combination.scales": scales * found[0], "combination.shifts": shifts * found[0] + found[1]}
    return weights | {name: value.astype(np.float32) for name, value in changed.items()}
