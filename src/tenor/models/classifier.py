"""The recurrent classifier: embedding, recurrent layers, masked pooling over time, a linear head."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.models.embedding import RowEmbedding
from tenor.models.light import LightCell
from tenor.models.masks import dropout_mask
from tenor.models.pooling import POOLINGS, reverse_index
from tenor.models.stage import Stage, run_stages

CELLS: dict[str, Callable[[int, int], nn.Module]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn": nn.RNN,
    "qrnn": LightCell,
}


@dataclass(frozen=True)
class ModelSpec:
    """All that is needed to build the model; written into the run's config."""

    vocab_size: int
    num_classes: int = 2
    cell: str = "lstm"
    embedding_dim: int = 100
    hidden: int = 128
    layers: int = 1
    bidirectional: bool = False
    pooling: str = "max-mean"
    dropout: float = 0.0

    @property
    def num_outputs(self) -> int:
        """Two classes need one logit."""
        return 1 if self.num_classes == 2 else self.num_classes

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class RecurrentClassifier(nn.Module):
    """Knows nothing of workers. Padding is at the end, so it cannot reach the outputs that the pooling reads; the
    backward direction runs over each row reversed within its own length."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.embedding = RowEmbedding(spec.vocab_size, spec.embedding_dim)
        directions = 2 if spec.bidirectional else 1
        widths = [spec.embedding_dim] + [spec.hidden * directions] * (spec.layers - 1)
        cell = CELLS[spec.cell]
        self.forwards = nn.ModuleList(cell(width, spec.hidden) for width in widths)
        self.backwards = nn.ModuleList(cell(width, spec.hidden) for width in widths if spec.bidirectional)
        self.head = nn.Linear(POOLINGS[spec.pooling].widening * spec.hidden * directions, spec.num_outputs)

    def forward(self, batch: Batch) -> Tensor:
        """Logits: (batch,) for two classes, (batch, classes) otherwise."""
        return run_stages(self.stages(), batch.tokens, batch)

    def stages(self) -> list[Stage]:
        """Embedding, each recurrent layer (the last one pools), head."""
        spec, layers = self.spec, len(self.forwards)
        hidden = spec.hidden * (2 if spec.bidirectional else 1)
        shapes = [lambda batch: (*batch.tokens.shape, hidden)] * (layers - 1)
        shapes += [lambda batch: (len(batch), self.head.in_features)]
        recurrent = [
            Stage((self.forwards[i], *self.backwards[i : i + 1]), partial(self._recur, i), shapes[i])
            for i in range(layers)
        ]
        return [
            Stage((self.embedding,), self._embed, lambda batch: (*batch.tokens.shape, spec.embedding_dim)),
            *recurrent,
            Stage((self.head,), self._decide, lambda batch: (len(batch), self.head.out_features)),
        ]

    def _embed(self, tokens: Tensor, batch: Batch) -> Tensor:
        return self._drop(self.embedding(tokens), batch, stream=0)  # (time, batch, width)

    def _recur(self, layer: int, states: Tensor, batch: Batch) -> Tensor:
        outputs: Tensor = self.forwards[layer](states)[0]
        if self.spec.bidirectional:
            flip = reverse_index(batch.lengths, len(states))
            mirrored = states.gather(0, flip.expand(-1, -1, states.shape[2]))
            back = self.backwards[layer](mirrored)[0]
            outputs = torch.cat([outputs, back.gather(0, flip.expand(-1, -1, back.shape[2]))], dim=2)
        outputs = self._drop(outputs, batch, stream=layer + 1)
        if layer < len(self.forwards) - 1:
            return outputs
        return POOLINGS[self.spec.pooling](outputs, batch.lengths, self.spec.bidirectional)

    def _decide(self, pooled: Tensor, batch: Batch) -> Tensor:
        logits: Tensor = self.head(pooled)
        return logits.squeeze(1) if self.spec.num_outputs == 1 else logits

    def _drop(self, states: Tensor, batch: Batch, stream: int) -> Tensor:
        """One mask a sample and layer, the same at every time step."""
        if not self.training or self.spec.dropout == 0.0:
            return states
        mask = dropout_mask(batch.keys, stream, states.shape[2], self.spec.dropout, states.dtype)
        return states * mask.to(states.device)


def initialise(model: RecurrentClassifier, seed: int) -> None:
    """Set the weights from the seed alone: orthogonal recurrences, scaled uniform inputs, open forget gates."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name == "embedding.weight":
                weight.normal_(0.0, 0.1, generator=generator)
                weight[0].zero_()
            elif "weight_hh" in name:
                for gate in weight.split(weight.shape[1]):
                    nn.init.orthogonal_(gate, generator=generator)
            elif weight.dim() == 2:
                bound = math.sqrt(6.0 / (weight.shape[1] + model.spec.hidden))
                weight.uniform_(-bound, bound, generator=generator)
            else:
                weight.zero_()
                if model.spec.cell == "lstm" and "bias_ih" in name:
                    weight[model.spec.hidden : 2 * model.spec.hidden] = 1.0
