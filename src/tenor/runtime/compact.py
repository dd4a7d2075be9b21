"""Read a model that `tenor export --format compact` wrote: one small file, a safetensors file with JSON metadata.

The n-grams that matter are kept, each as the gap to the bucket before it, a code for how much it counts, and a code for
what it adds. Large matrices of the deep part have one byte per number and a scale per row. The file may come from a
stranger, so its size, its header and every length are checked before anything is allocated.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.errors import RunError
from tenor.models.arrays import HEADER_BYTES, Array, parse_arrays
from tenor.models.spec import ModelSpec, weight_shapes
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.preparation.tokeniser.words import are_words
from tenor.runtime.read_run import RunContents, check_config, make_encoder, read_run
from tenor.store.manifest import VOCABULARY_BYTES
from tenor.store.trusted import parse_json, read_bytes
from tenor.training.runs.config import FORMAT

KIND = "tenor-compact-1"
MOST_BYTES = 1 << 30  # of a file
MOST_TABLE_BYTES = 1 << 29  # that the n-grams need in memory
MOST_BUCKETS = 1 << 12  # for each n-gram that the file has
UNPACKED_BYTES = 1 << 20  # to which any compressed array may unpack
MOST_RATIO = 20  # by which longer ones may grow; real ones grow three- or fourfold
LEVELS = 15  # the largest code of how much an n-gram counts
MIDDLE = 128  # the code of an n-gram that adds nothing
STEPS = 127  # codes on each side of it
FULL = 255  # a gap that continues in the next byte
_REMEDY = "export the model again"

Bytes = NDArray[np.uint8]


def read_model(path: Path) -> RunContents:
    """Read a run folder, or the single file of a compact model.

    Raises:
        RunError: Something is missing, damaged or not allowed.
    """
    if not path.is_file():
        return read_run(path)

    def check_head(head: bytes) -> None:
        if not 2 <= int.from_bytes(head[:8], "little") <= HEADER_BYTES:
            raise RunError("is not a safetensors file, or is damaged", where=path, remedy=_REMEDY)

    return read_compact(read_bytes(path, MOST_BYTES, RunError, check_head), path)


def read_compact(data: bytes, path: Path) -> RunContents:
    """The model in the bytes of a file; `path` is the name in messages."""
    try:
        arrays, metadata = parse_arrays(data, path)
        if metadata.get("kind") != KIND:
            raise ValueError(f"is not a model of the kind {KIND}, which this version reads")
        config = parse_json(str(metadata.get("config")).encode(), path, RunError)
        if config.get("format") != FORMAT:
            raise ValueError(f"has format {config.get('format')!r:.40}, but this version reads {FORMAT}")
        if metadata.get("sha256") != content_hash(arrays, metadata["config"]):
            raise ValueError("is damaged: its content does not match its hash")
        spec = check_config(config, path)
        weights = _weights(spec, arrays)
        words = _unpacked(arrays, "words", VOCABULARY_BYTES).tobytes().decode().split("\n")
        if not are_words(words) or len(set(words)) != len(words):
            raise ValueError("is damaged: its words are not a vocabulary")
    except (ValueError, KeyError) as error:
        raise RunError(str(error), where=path, remedy=_REMEDY) from None
    return RunContents(spec, make_encoder(Vocabulary(words), spec, config, path), weights, config)


def content_hash(arrays: Mapping[str, Array], config: str) -> str:
    """A hash of the config and of the bytes of all arrays, sorted by name."""
    total = hashlib.sha256(config.encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].shape} {arrays[name].dtype}\n".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


def _weights(spec: ModelSpec, arrays: Mapping[str, Array]) -> dict[str, Array]:
    weights = _wide(spec, arrays) if spec.wide is not None else {}
    for name, shape in weight_shapes(spec).items():
        if name not in weights:
            weights[name] = _matrix(arrays, name, shape)
        if not np.isfinite(weights[name]).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    return weights


def _matrix(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A matrix that is stored as it is, or with one byte per number and a scale per row."""
    if name in arrays:
        return _found(arrays, name, np.float32, shape)
    codes = _found(arrays, f"{name}.codes", np.uint8, shape).astype(np.float32)
    codes -= np.float32(MIDDLE)
    codes *= _found(arrays, f"{name}.scales", np.float32, shape[:1])[:, None]
    return codes


def _wide(spec: ModelSpec, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The tables of n-grams; those that were left out are 0, which stands for an n-gram to ignore."""
    assert spec.wide is not None
    buckets, outputs = 1 << spec.wide.bits, spec.num_outputs
    low, high, top = (float(value) for value in _found(arrays, "wide.range", np.float32, (3,)))
    if not (0.0 < low <= high < np.inf and 0.0 <= top < np.inf):
        raise ValueError("is damaged: the range of its n-grams is not allowed")
    most = buckets + buckets // FULL + 1
    stream = _unpacked(arrays, "wide.gaps", most)
    ends = np.flatnonzero(stream < FULL)
    places = np.cumsum(stream, dtype=np.int64)[ends] - 1
    if buckets * (1 + outputs) * 4 > MOST_TABLE_BYTES or buckets > MOST_BUCKETS * max(1, len(places)):
        raise ValueError("is not allowed: its n-grams need too much memory")
    if len(places) and (places[0] < 0 or places[-1] >= buckets or (np.diff(places) <= 0).any()):
        raise ValueError("is damaged: an n-gram is outside its table")
    counts = _unpacked(arrays, "wide.counts", len(places), exact=True)
    adds = _unpacked(arrays, "wide.adds", len(places) * outputs, exact=True).reshape(len(places), outputs)
    importance = (low * (high / low) ** (counts.astype(np.float64) / LEVELS)).astype(np.float32)
    steps = (adds.astype(np.float64) - MIDDLE) / STEPS
    table, weight = np.zeros(buckets, np.float32), np.zeros((buckets, outputs), np.float32)
    table[places] = importance
    weight[places] = np.sign(steps) * steps * steps * top / importance[:, None]
    return {"wide.importance": table, "wide.ngrams.weight": weight}


def _found(arrays: Mapping[str, Array], name: str, kind: type, shape: tuple[int, ...]) -> Array:
    found = arrays.get(name)
    if found is None or found.dtype != kind or found.shape != shape:
        raise ValueError(f"has no array {name!r:.60} of the shape {shape}, which its model needs")
    return found


def _unpacked(arrays: Mapping[str, Array], name: str, most: int, *, exact: bool = False) -> Bytes:
    """The bytes of a compressed array: at most `most` of them, or exactly as many.

    Without an exact number, a few bytes may not become very many: every byte becomes several numbers or a word.
    """
    packed = arrays.get(name)
    if packed is None or packed.dtype != np.uint8 or packed.ndim != 1:
        raise ValueError(f"has no array {name!r}, which its model needs")
    if not exact:
        most = min(most, max(UNPACKED_BYTES, MOST_RATIO * len(packed)))
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(packed.tobytes(), most + 1)
    except zlib.error:
        raise ValueError(f"is damaged: {name} cannot be decompressed") from None
    if len(found) > most or not reader.eof or (exact and len(found) != most):
        raise ValueError(f"is damaged: {name} has another length than its model needs")
    return np.frombuffer(found, np.uint8)
