"""The deep part: word vectors, a convolution or recurrent layers, masked pooling over time, a linear head."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.models.deep.cells import CELLS, make_cell
from tenor.models.deep.masks import dropout_mask
from tenor.models.deep.pooling import POOLINGS, reverse_index
from tenor.models.embedding import RowEmbedding
from tenor.models.spec import DeepSpec
from tenor.models.stage import Stage


class Deep(nn.Module):
    """Word vectors, a convolution or recurrent layers, a pooling over time, a linear head.

    Padding is at the end, so it cannot affect the outputs that the pooling reads. The backward direction reads each row
    reversed within its own length.
    """

    def __init__(self, spec: DeepSpec, num_outputs: int) -> None:
        super().__init__()
        self.spec = spec
        self.embedding = RowEmbedding(spec.vocab_size, spec.embedding_dim)
        directions = 2 if spec.bidirectional else 1
        widths = [spec.embedding_dim] + [spec.hidden * directions] * (spec.layers - 1)
        cells = [make_cell(spec.cell, width, spec.hidden, spec.window) for width in widths * directions]
        self.forwards = nn.ModuleList(cells[: spec.layers])
        self.backwards = nn.ModuleList(cells[spec.layers :])
        self.head = nn.Linear(POOLINGS[spec.pooling].widening * spec.hidden * directions, num_outputs)

    def stages(self) -> list[Stage]:
        """The embedding, each layer (the last one also pools), and the head with logits (batch, outputs)."""
        spec, head, layers = self.spec, self.head, len(self.forwards)
        hidden = spec.hidden * (2 if spec.bidirectional else 1)
        shapes = [lambda batch: (*batch.inputs.shape, hidden)] * (layers - 1)
        shapes += [lambda batch: (len(batch), head.in_features)]
        recurrent = [
            Stage((self.forwards[i], *self.backwards[i : i + 1]), partial(self._recur, i), shapes[i])
            for i in range(layers)
        ]
        return [
            Stage((self.embedding,), self._embed, lambda batch: (*batch.inputs.shape, spec.embedding_dim)),
            *recurrent,
            Stage((self.head,), lambda pooled, _: head(pooled), lambda batch: (len(batch), head.out_features)),
        ]

    def _embed(self, ids: Tensor, batch: Batch) -> Tensor:
        return self._drop(self.embedding(ids), batch, 0, self.spec.input_dropout)  # (time, batch, width)

    def _recur(self, layer: int, states: Tensor, batch: Batch) -> Tensor:
        is_last, largest = layer == len(self.forwards) - 1, getattr(self.forwards[layer], "largest", None)
        if is_last and largest and self.spec.pooling == "max" and not self.spec.bidirectional:
            # Outputs of such a cell are not negative: dropping features after the pooling is the same as before it.
            return self._drop(largest(states, batch.lengths), batch, layer + 1, self.spec.dropout)
        outputs: Tensor = self.forwards[layer](states)[0]
        if self.spec.bidirectional:
            flip = reverse_index(batch.lengths, len(states))
            mirrored = states.gather(0, flip.expand(-1, -1, states.shape[2]))
            back = self.backwards[layer](mirrored)[0]
            outputs = torch.cat([outputs, back.gather(0, flip.expand(-1, -1, back.shape[2]))], dim=2)
        outputs = self._drop(outputs, batch, layer + 1, self.spec.dropout)
        if not is_last:
            return outputs
        return POOLINGS[self.spec.pooling](outputs, batch.lengths, self.spec.bidirectional)

    def _drop(self, states: Tensor, batch: Batch, stream: int, share: float) -> Tensor:
        """Apply one mask per sample and layer, the same at every time step."""
        if not self.training or share == 0.0:
            return states
        mask = dropout_mask(batch.keys, stream, states.shape[-1], share, states.dtype)
        return states * mask.to(states.device)


def initialise(model: Deep, seed: int) -> None:
    """Set the weights from the seed alone: orthogonal recurrences, scaled uniform inputs, open forget gates."""
    forget_gate, hidden = CELLS[model.spec.cell].forget_gate, model.spec.hidden
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
                bound = math.sqrt(6.0 / (weight.shape[1] + hidden))
                weight.uniform_(-bound, bound, generator=generator)
            else:
                weight.zero_()
                if forget_gate is not None and "bias_ih" in name:
                    weight[forget_gate * hidden : (forget_gate + 1) * hidden] = 1.0
