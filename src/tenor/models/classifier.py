"""The classifier of reviews: a wide part, a deep part or both, and how their logits are combined."""

from __future__ import annotations

import torch
from torch import Tensor

from tenor.models.batch import Batch
from tenor.models.combination import Combination
from tenor.models.deep.part import Deep
from tenor.models.spec import ModelSpec
from tenor.models.stage import Stage, StagedModel
from tenor.models.wide.part import Wide


class ReviewNetwork(StagedModel):
    """The parts are trained side by side, each with a loss of its own; `combination` belongs to prediction.

    With one common loss, the wide part would soon explain the training rows and leave the deep part nothing to learn.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.wide = Wide(spec.wide, spec.num_outputs) if spec.wide else None
        self.deep = Deep(spec.deep, spec.num_outputs) if spec.deep else None
        self.combination = Combination(spec.num_parts, spec.num_outputs)

    def stages(self) -> list[Stage]:
        """Those of the deep part. The last one also computes the wide part; it gives logits (parts, batch, outputs)."""
        if self.deep is None:
            return [Stage((self.wide,) if self.wide else (), lambda _, batch: self._decide(None, batch), self._shape)]
        *stages, head = self.deep.stages()
        modules = (*head.modules, *((self.wide,) if self.wide else ()))
        return [
            *stages,
            Stage(modules, lambda states, batch: self._decide(head.compute(states, batch), batch), self._shape),
        ]

    def _decide(self, deep: Tensor | None, batch: Batch) -> Tensor:
        parts = [] if deep is None else [deep]
        if self.wide is not None:
            assert batch.ngrams is not None
            parts.insert(0, self.wide(batch.ngrams))
        return torch.stack(parts)

    def _shape(self, batch: Batch) -> tuple[int, ...]:
        return self.spec.num_parts, len(batch), self.spec.num_outputs
