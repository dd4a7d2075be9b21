"""The deep part at prediction: from token ids to logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.models.rows import shortened
from tenor.models.spec import DeepSpec
from tenor.runtime.convolution import Convolution
from tenor.runtime.layers import pooled_states

BATCH = 128  # rows that go through the layers together


class DeepLogits:
    """Computes the logits of a deep part. Threads may share it."""

    def __init__(self, spec: DeepSpec, weights: Mapping[str, NDArray[Any]]) -> None:
        self.spec = spec
        self._weights = {name.removeprefix("deep."): w for name, w in weights.items() if name.startswith("deep.")}
        self._convolution: Convolution | None = None
        if spec.cell == "conv" and spec.pooling == "max" and spec.layers == 1 and not spec.bidirectional:
            cell = (self._weights["forwards.0.weight"], self._weights["forwards.0.bias"])
            self._convolution = Convolution(self._weights["embedding.weight"], *cell)

    def __call__(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float64]:
        """(rows, outputs).

        Args:
            tokens: The ids of all rows, one row after another.
            lengths: Ids of each row, at least 1.
        """
        tokens, lengths = shortened(tokens, lengths, self.spec.length)
        ends = np.cumsum(lengths, dtype=np.int64)
        if self._convolution is not None:
            pooled = self._convolution.largest(tokens, ends)
        else:
            pooled = self._through_layers(tokens, lengths.astype(np.int64), ends)
        logits: NDArray[np.float64] = pooled @ self._weights["head.weight"].T + self._weights["head.bias"]
        return logits.astype(np.float64)

    @property
    def is_convolution(self) -> bool:
        """Whether it is a convolution with max pooling of one layer, which has a faster way."""
        return self._convolution is not None

    @property
    def num_outputs(self) -> int:
        return len(self._weights["head.bias"])

    def word_values(self, tokens: NDArray[np.int32]) -> NDArray[np.float64] | None:
        """(tokens, outputs): what each word of a row adds to its logits; None for cells without such a division."""
        if self._convolution is None:
            return None
        values: NDArray[np.float64] = self._convolution.by_word(tokens) @ self._weights["head.weight"].T
        return values.astype(np.float64)

    def _through_layers(
        self, tokens: NDArray[np.int32], lengths: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Rows of similar length go together, so that there is little padding."""
        vectors = self._weights["embedding.weight"]
        order = np.argsort(lengths, kind="stable")
        pooled = np.empty((len(lengths), self._weights["head.weight"].shape[1]), vectors.dtype)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            ids = np.zeros((int(lengths[rows].max()), len(rows)), np.int64)
            for column, row in enumerate(rows):
                ids[: lengths[row], column] = tokens[ends[row] - lengths[row] : ends[row]]
            pooled[rows] = pooled_states(self.spec, self._weights, vectors[ids], lengths[rows])
        return pooled
