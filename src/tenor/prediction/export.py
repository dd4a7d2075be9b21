"""`tenor.export_model`: write a trained model for other programs, and say what a smaller form costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import MissingExtra, StoreError, UsageError
from tenor.evaluation.decision import decide
from tenor.models.wide.ngrams import count_rows_with
from tenor.prediction.compact import choose_ngrams, make_compact, recalibrated
from tenor.prediction.onnx_graph import make_onnx
from tenor.runtime.combined import CombinedParts, with_unknown
from tenor.runtime.compact import read_compact, read_model
from tenor.runtime.read_run import RunContents
from tenor.store.atomic import check_target, write_bytes
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split

FORMATS = ("onnx", "compact")
DEFAULT_NGRAMS = 200_000
CHECKED_ROWS = 2000  # of the test rows, to compare an ONNX file on
MOST_VALID_ROWS = 50_000
BLOCK_ROWS = 8192
_BATCH = 64


@dataclass(frozen=True)
class ExportResult:
    """The result of `tenor.export_model`.

    Attributes:
        out: The file.
        bytes: Its size.
        ngrams: N-grams of a compact model; None for other formats and for a model without a wide part.
        checked_rows: Rows on which it was compared with the model; 0 if no data was given.
        largest_difference: The largest difference between two probabilities.
        accuracy: Of the exported model on these rows; None without data.
        accuracy_lost: Accuracy of the model minus that of the exported one; None without data.
    """

    out: Path
    bytes: int
    ngrams: int | None = None
    checked_rows: int = 0
    largest_difference: float | None = None
    accuracy: float | None = None
    accuracy_lost: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values.

        >>> tenor.export_model("run", "model.onnx").as_dict()["bytes"]  # doctest: +SKIP
        33561596
        """
        return {**vars(self), "out": str(self.out)}


@dataclass(frozen=True)
class CheckedRows:
    """Labelled rows on which an exported model is compared with the model."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]
    labels: NDArray[Any]

    @classmethod
    def of(cls, data: Path, name: str, most: int) -> CheckedRows:
        with open_split(data, name) as split:
            rows = np.arange(min(most, len(split)))
            return cls(*with_unknown(*split.gather(rows)), np.array(split.labels[rows]))

    def compare(self, contents: RunContents, found: NDArray[np.float32], threshold: float) -> dict[str, Any]:
        """The figures of a result, from the probabilities of the exported model."""
        expected = CombinedParts(contents.spec, contents.weights, contents.characters).probabilities(
            self.tokens, self.lengths
        )
        own_threshold = float(contents.weights["combination.threshold"][0])
        own = float((decide(expected, own_threshold) == self.labels).mean())
        other = float((decide(found, threshold) == self.labels).mean())
        largest = float(np.abs(found - expected).max(initial=0.0))
        return {
            "checked_rows": len(self.labels),
            "largest_difference": largest,
            "accuracy": other,
            "accuracy_lost": own - other,
        }


def export_model(
    run: str | Path,
    out: str | Path,
    *,
    format: str = "onnx",
    int8: bool = False,
    ngrams: int | None = None,
    data: str | Path | None = None,
) -> ExportResult:
    """Write the model of a run as an ONNX file, or as a compact model: one small file that Tenor reads.

    The inputs of the ONNX graph are `tokens` (rows, time), padded with 0 at the end, and `lengths` (rows,), both 64-bit
    integers; its output is `probabilities` (rows, classes). A row without tokens must have the token 1.

    A compact model keeps the n-grams that matter most and stores numbers in a byte or less. `tenor.load`, `tenor
    predict` and `tenor serve` take the file instead of a run folder.

    Args:
        run: A folder made by `tenor train`.
        out: The file to write.
        format: `onnx` or `compact`.
        int8: Store the large tables of an ONNX file as 8-bit integers, a quarter of the size.
        ngrams: N-grams that a compact model keeps. Default: 200,000 with `data`, and all of them without. 0: all.
        data: Prepared data with the run's vocabulary. An ONNX file is compared with the model on its test rows. A
            compact model keeps the n-grams that matter for its training rows, is calibrated on its validation rows, and
            compared on them.

    Returns:
        The size of the file and, with `data`, how it compares with the model.

    Raises:
        UsageError: The model has a cell that cannot be exported, or the format does not exist.
        RunError, StoreError: The run or the data cannot be used.

    >>> tenor.export_model("run", "small.onnx", int8=True, data="data").accuracy_lost  # doctest: +SKIP
    0.0002
    >>> tenor.export_model("run", "small.tenor", format="compact", data="data").bytes  # doctest: +SKIP
    341752
    """
    if format not in FORMATS:
        raise UsageError(f"--format does not know {format!r}", remedy=f"choose one of {', '.join(FORMATS)}")
    target = Path(out)
    check_target(target)
    contents = read_model(Path(run))
    if data is not None:
        _check_vocabulary(contents, Path(data))
    if format == "compact":
        made, figures = _compact(contents, ngrams, None if data is None else Path(data), target)
    else:
        made, figures = make_onnx(contents, int8=int8), {}
        if data is not None:
            rows = CheckedRows.of(Path(data), "test", CHECKED_ROWS)
            if len(rows.labels):
                threshold = float(contents.weights["combination.threshold"][0])
                figures = rows.compare(contents, run_onnx(made, rows.tokens, rows.lengths), threshold)
    write_bytes(target, made)
    return ExportResult(target, len(made), **figures)


def _check_vocabulary(contents: RunContents, data: Path) -> None:
    if Manifest.load(data).vocab_sha256 != contents.config["vocab_sha256"]:
        remedy = "give the data that the run was trained on"
        raise StoreError("was prepared with another vocabulary than the run's", where=data, remedy=remedy)


def _compact(
    contents: RunContents, ngrams: int | None, data: Path | None, target: Path
) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a compact model, and what the result says about it."""
    most = (DEFAULT_NGRAMS if data is not None else 0) if ngrams is None else ngrams
    if most < 0:
        raise UsageError(f"--ngrams cannot be {most}", remedy="give a whole number of at least 1, or 0 for all")
    buckets = None
    if contents.spec.wide is not None:
        buckets = choose_ngrams(contents.weights, None if data is None else _rows_with(contents, data), most)
    figures: dict[str, Any] = {"ngrams": None if buckets is None else len(buckets)}
    made = make_compact(contents, buckets)
    rows = None if data is None else CheckedRows.of(data, "valid", MOST_VALID_ROWS)
    if rows is None or not len(rows.labels):
        return made, figures
    found = read_compact(made, target)
    logits = CombinedParts(found.spec, found.weights, found.characters).logits(rows.tokens, rows.lengths)
    changed = recalibrated(contents.weights, logits, rows.labels)
    made = make_compact(replace(contents, weights=changed), buckets)
    found = read_compact(made, target)
    chances = CombinedParts(found.spec, found.weights, found.characters).probabilities(rows.tokens, rows.lengths)
    return made, figures | rows.compare(contents, chances, float(found.weights["combination.threshold"][0]))


def _rows_with(contents: RunContents, data: Path) -> NDArray[np.int32]:
    """(buckets,): the number of training rows that have each n-gram."""
    spec = contents.spec
    assert spec.wide is not None
    bits, longest = spec.wide.bits, spec.wide.longest

    def blocks() -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        for start in range(0, len(split), BLOCK_ROWS):
            rows = np.arange(start, min(start + BLOCK_ROWS, len(split)))
            yield *split.gather(rows), np.array(split.labels[rows])

    with open_split(data, "train") as split:
        counts: NDArray[np.int32] = count_rows_with(blocks(), bits, longest, spec.num_classes, contents.characters)
    total: NDArray[np.int32] = counts.sum(axis=0, dtype=np.int32)
    return total


def run_onnx(model: bytes, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
    """Score rows with an ONNX file in onnxruntime; every row has at least one token."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("comparing an ONNX file with the model", "onnx") from None
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ends, found = np.cumsum(lengths, dtype=np.int64), []
    for start in range(0, len(lengths), _BATCH):
        rows = range(start, min(start + _BATCH, len(lengths)))
        padded = np.zeros((len(rows), int(lengths[rows.start : rows.stop].max())), np.int64)
        for place, row in enumerate(rows):
            padded[place, : lengths[row]] = tokens[ends[row] - lengths[row] : ends[row]]
        inputs = {"tokens": padded, "lengths": lengths[rows.start : rows.stop].astype(np.int64)}
        found.append(session.run(None, inputs)[0])
    return np.concatenate(found)
