"""`tenor.export_model`: write a trained model for other programs, and say what a smaller form costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import MissingExtra
from tenor.evaluation.decision import decide
from tenor.prediction.onnx_graph import make_onnx
from tenor.runtime.combined import CombinedParts, with_unknown
from tenor.runtime.read_run import read_run
from tenor.store.atomic import check_target, write_bytes
from tenor.store.reader import open_split

CHECKED_ROWS = 2000  # of a split, to measure on
_BATCH = 64


@dataclass(frozen=True)
class ExportResult:
    """What was written.

    Attributes:
        out: The file.
        bytes: Its size.
        checked_rows: Rows on which it was compared with the model; 0 if no data was given.
        largest_difference: The largest difference between two probabilities.
        accuracy: Of the exported model on these rows; None without data.
        accuracy_lost: Accuracy of the model minus that of the exported one; None without data.
    """

    out: Path
    bytes: int
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


def export_model(
    run: str | Path, out: str | Path, *, int8: bool = False, data: str | Path | None = None
) -> ExportResult:
    """Write the model of a run as an ONNX file.

    The inputs of the graph are `tokens` (rows, time), padded with 0 at the end, and `lengths` (rows,), both 64-bit
    integers; its output is `probabilities` (rows, classes). A row without tokens must have the token 1.

    Args:
        run: A folder made by `tenor train`.
        out: The file to write.
        int8: Store the large tables as 8-bit integers, a quarter of the size.
        data: Prepared data with the run's vocabulary, on whose test split to compare the file with the model.

    Returns:
        The size of the file and, with `data`, how it compares with the model.

    Raises:
        UsageError: The model has a cell that cannot be exported.
        RunError, StoreError: The run or the data cannot be used.

    >>> tenor.export_model("run", "small.onnx", int8=True, data="data").accuracy_lost  # doctest: +SKIP
    0.0002
    """
    target = Path(out)
    check_target(target)
    contents = read_run(Path(run))
    made = make_onnx(contents, int8=int8)
    result = ExportResult(target, len(made))
    if data is not None:
        with open_split(Path(data), "test") as split:
            rows = np.arange(min(CHECKED_ROWS, len(split)))
            tokens, lengths = with_unknown(*split.gather(rows))
            labels = split.labels[rows]
        expected = CombinedParts(contents.spec, contents.weights).probabilities(tokens, lengths)
        found = run_onnx(made, tokens, lengths)
        threshold = float(contents.weights["combination.threshold"][0])
        own, other = (float((decide(chances, threshold) == labels).mean()) for chances in (expected, found))
        largest = float(np.abs(found - expected).max(initial=0.0))
        result = ExportResult(target, len(made), len(rows), largest, other, own - other)
    write_bytes(target, made)
    return result


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
