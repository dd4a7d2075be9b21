"""The weights and gradients that travel: dense ones as one vector, and the rows of tables that a lease touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tenor.groups.compression import Compression
from tenor.training.optim.optimizers import Optimizer
from tenor.training.parameter_server.messages import Array

DENSE = "dense"  # the name of the vector of all dense weights


class Cargo:
    """The weights and gradients of a model as arrays, in the same layout on the server and on the workers."""

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
        """The largest message in bytes: top-k sends positions with the values, and a row number has 8 bytes."""
        return (1 << 21) + 3 * sum(weight.nbytes for weight in self.optimizer.weights.values())

    def weights(self) -> Tensor:
        """A copy of all dense weights."""
        return self._joined(self.optimizer.weights)

    def _joined(self, values: Mapping[str, Tensor]) -> Tensor:
        """The dense ones of these tensors as one vector, which is empty for a model of tables alone."""
        like = next(iter(self.optimizer.weights.values()))
        return torch.cat([like.new_empty(0), *(values[name].flatten() for name in self.parameters)]).cpu()

    @torch.no_grad()
    def take_weights(self, flat: Array) -> None:
        for name, part in zip(self.parameters, tensor(flat).split(self.sizes), strict=True):
            weight = self.optimizer.weights[name]
            weight.copy_(part.view_as(weight))

    def rows(self, rows: Sequence[Tensor]) -> list[Tensor]:
        """A copy of these rows of each table."""
        tables = [self.optimizer.weights[name] for name in self.tables]
        pairs = zip(tables, rows, strict=True)
        return [weight.index_select(0, own.to(weight.device)).cpu() for weight, own in pairs]

    @torch.no_grad()
    def take_rows(self, rows: Sequence[Tensor], values: Sequence[Array]) -> None:
        for name, own, value in zip(self.tables, rows, values, strict=True):
            weight = self.optimizer.weights[name]
            weight.index_copy_(0, own.to(weight.device), tensor(value).to(weight.device))

    def pack_gradients(self, push: int) -> list[Tensor]:
        """This worker's gradients in packed form, for the push of this number: the dense ones, then each table."""
        gradients = dict(self.optimizer.gradients())
        parts = self.compression.pack(DENSE, self._joined(gradients), push=push)
        for name, table in self.tables.items():
            assert table.rows is not None
            flat = gradients[name].detach().flatten().cpu()
            parts += self.compression.pack(name, flat, table.rows.cpu(), push=push)
        return parts

    @property
    def num_rows(self) -> list[int]:
        """The number of rows of each table."""
        return [len(self.optimizer.weights[name]) for name in self.tables]

    def fits(self, arrays: Sequence[Array], rows: Sequence[Tensor] | None) -> bool:
        """Whether these arrays are gradients of this model in the form that `unpack_gradients` accepts."""
        if self.tables and rows is None:
            return False
        weights, num = self.optimizer.weights, self.compression.num_parts
        sizes = [self.width, *(len(own) * weights[name].shape[1] for name, own in self._pairs(rows))]
        parts = [arrays[at : at + num] for at in range(0, len(arrays), num)]
        dtype = np.dtype(str(next(iter(weights.values())).dtype).removeprefix("torch."))
        return len(arrays) == num * len(sizes) and all(
            self.compression.fits(part, size, dtype) for part, size in zip(parts, sizes, strict=True)
        )

    def _pairs(self, rows: Sequence[Tensor] | None) -> Iterable[tuple[str, Tensor]]:
        """The name of each table's weight, and its rows; `rows` may be None for a model without tables."""
        return zip(self.tables, rows or [], strict=True)

    def unpack_gradients(self, arrays: Sequence[Array], rows: Sequence[Tensor] | None) -> list[Tensor]:
        """The gradients that a worker packed: the dense vector, then one tensor (rows, width) per table."""
        every: Iterator[Tensor] = map(tensor, arrays)
        like = next(iter(self.optimizer.weights.values()))
        found = [torch.empty(self.width, dtype=like.dtype)]
        for name, own in self._pairs(rows):
            found.append(torch.empty(len(own), self.optimizer.weights[name].shape[1], dtype=like.dtype))
        for gradient in found:
            self.compression.unpack([next(every) for _ in range(self.compression.num_parts)], gradient.view(-1))
        return found

    def place_gradients(self, found: Sequence[Tensor], rows: Sequence[Tensor] | None) -> None:
        """Set the gradients that the optimizer applies."""
        for parameter, part in zip(self.parameters.values(), found[0].split(self.sizes), strict=True):
            parameter.grad = part.view_as(parameter).to(parameter.device)
        for (name, own), gradient in zip(self._pairs(rows), found[1:], strict=True):
            table = self.tables[name]
            table.focus(own.to(table.weight.device))
            assert table.leaf is not None
            table.leaf.grad = gradient.to(table.weight.device)


def tensor(array: Array) -> Tensor:
    """A copy of a received array. Received arrays are read-only, about which torch would warn."""
    return torch.from_numpy(array.copy())
