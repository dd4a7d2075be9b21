"""What of a model travels: dense weights as one vector, of embedding tables the rows that a lease touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from tenor.training.compression import Compression
from tenor.training.optimizers import Optimizer
from tenor.training.parameter_server.messages import Array

DENSE = "dense"  # the name of the one vector


class Cargo:
    """A model's weights and gradients as arrays, the same way at both ends."""

    def __init__(self, model: nn.Module, optimizer: Optimizer, compression: Compression) -> None:
        self.optimizer, self.compression = optimizer, compression
        self.tables = optimizer.tables
        self.parameters = {name: p for name, p in model.named_parameters() if name not in self.tables}
        self.sizes = [parameter.numel() for parameter in self.parameters.values()]
        self.width = sum(self.sizes)
        compression.remember(DENSE, self.weights())
        for name in self.tables:
            compression.remember(name, optimizer.weights[name])

    @property
    def limit(self) -> int:
        """Bytes that no message exceeds: top-k sends places beside values, and a request names rows in 8 bytes."""
        return (1 << 21) + 3 * sum(weight.nbytes for weight in self.optimizer.weights.values())

    def weights(self) -> Tensor:
        """A copy of all dense weights."""
        return torch.cat([self.optimizer.weights[name].flatten() for name in self.parameters]).cpu()

    @torch.no_grad()
    def take_weights(self, flat: Array) -> None:
        for name, part in zip(self.parameters, tensor(flat).split(self.sizes), strict=True):
            weight = self.optimizer.weights[name]
            weight.copy_(part.view_as(weight))

    def rows(self, rows: Tensor) -> list[Tensor]:
        """A copy of those rows of every table."""
        return [
            self.optimizer.weights[name].index_select(0, rows.to(self.optimizer.weights[name].device)).cpu()
            for name in self.tables
        ]

    @torch.no_grad()
    def take_rows(self, rows: Tensor, values: Sequence[Array]) -> None:
        for name, value in zip(self.tables, values, strict=True):
            weight = self.optimizer.weights[name]
            weight.index_copy_(0, rows.to(weight.device), tensor(value).to(weight.device))

    def pack_gradients(self) -> list[Tensor]:
        """This worker's gradients as they travel, tables after the dense ones."""
        gradients = dict(self.optimizer.gradients())
        flat = torch.cat([gradients[name].flatten() for name in self.parameters]).cpu()
        parts = self.compression.pack(DENSE, flat)
        for name, table in self.tables.items():
            assert table.rows is not None
            parts += self.compression.pack(name, gradients[name].detach().flatten().cpu(), table.rows.cpu())
        return parts

    def unpack_gradients(self, arrays: Sequence[Array], rows: Tensor | None) -> list[Tensor]:
        """What a worker packed: the dense vector, then (rows, width) a table."""
        every: Iterator[Tensor] = map(tensor, arrays)
        like = next(iter(self.optimizer.weights.values()))
        found = [torch.empty(self.width, dtype=like.dtype)]
        for name in self.tables:
            assert rows is not None
            found.append(torch.empty(len(rows), self.optimizer.weights[name].shape[1], dtype=like.dtype))
        for gradient in found:
            self.compression.unpack([next(every) for _ in range(self.compression.num_parts)], gradient.view(-1))
        return found

    def place_gradients(self, found: Sequence[Tensor], rows: Tensor | None) -> None:
        """Make these the gradients that the optimizer sees."""
        for parameter, part in zip(self.parameters.values(), found[0].split(self.sizes), strict=True):
            parameter.grad = part.view_as(parameter).to(parameter.device)
        for table, gradient in zip(self.tables.values(), found[1:], strict=True):
            assert rows is not None
            table.focus(rows.to(table.weight.device))
            assert table.leaf is not None
            table.leaf.grad = gradient.to(table.weight.device)


def tensor(array: Array) -> Tensor:
    """Received bytes are read-only, which torch warns of: a copy."""
    return torch.from_numpy(array.copy())
