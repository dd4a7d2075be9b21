"""A light recurrent cell: gates read the words alone, so all products run before the recurrence, at full speed.

The quasi-recurrent network (Bradbury et al. 2017) with windows of two words and fo-pooling:

    z = tanh(W_z [x(t-1), x(t)] + b_z)    f, o = sigmoid(…)    c(t) = f c(t-1) + (1 - f) z    h(t) = o c(t)

What is left step by step is arithmetic on vectors: one compiled pass forwards, one backwards.
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tenor.corpus.compiled import compiled


class LightCell(nn.Module):
    """(time, batch, width) to (time, batch, hidden) and the last memory; called as nn.LSTM is."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.weight_before = nn.Parameter(torch.empty(3 * hidden, width))  # of the word before
        self.weight_now = nn.Parameter(torch.empty(3 * hidden, width))
        self.bias = nn.Parameter(torch.empty(3 * hidden))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        gates = nn.functional.linear(inputs, self.weight_now, self.bias)
        before = nn.functional.linear(inputs[:-1], self.weight_before)
        gates = torch.cat([gates[:1], gates[1:] + before])  # (time, batch, 3 hidden)
        if gates.device.type == "cpu" and gates.dtype in (torch.float32, torch.float64):
            outputs, memory = Scan.apply(gates)  # type: ignore[no-untyped-call]
            return outputs, memory
        return scan_plainly(gates)


def scan_plainly(gates: Tensor) -> tuple[Tensor, Tensor]:
    """The recurrence one step after another, in torch: for devices and types without a compiled pass."""
    z, f, o = gates.chunk(3, dim=2)
    z, f, o = z.tanh(), f.sigmoid(), o.sigmoid()
    memory = torch.zeros_like(z[0])
    outputs = []
    for t in range(len(gates)):
        memory = z[t] + f[t] * (memory - z[t])
        outputs.append(o[t] * memory)
    return torch.stack(outputs), memory


@compiled
def _forwards(gates: NDArray[Any], memory: NDArray[Any], outputs: NDArray[Any]) -> None:
    """`gates` holds z, f and o side by side, after their functions."""
    time, batch, hidden = outputs.shape
    for t in range(time):
        for row in range(batch):
            for j in range(hidden):
                z = gates[t, row, j]
                past = memory[t - 1, row, j] if t else gates.dtype.type(0)
                now = z + gates[t, row, hidden + j] * (past - z)
                memory[t, row, j] = now
                outputs[t, row, j] = gates[t, row, 2 * hidden + j] * now


@compiled
def _backwards(gates: NDArray[Any], memory: NDArray[Any], above: NDArray[Any], carry: NDArray[Any]) -> None:
    """Puts the gradient of the gates before their functions in the place of the gates."""
    time, batch, hidden = above.shape
    for t in range(time - 1, -1, -1):
        for row in range(batch):
            for j in range(hidden):
                z, f, o = gates[t, row, j], gates[t, row, hidden + j], gates[t, row, 2 * hidden + j]
                past = memory[t - 1, row, j] if t else gates.dtype.type(0)
                down = above[t, row, j] * o + carry[row, j]
                gates[t, row, j] = down * (1 - f) * (1 - z * z)
                gates[t, row, hidden + j] = down * (past - z) * f * (1 - f)
                gates[t, row, 2 * hidden + j] = above[t, row, j] * memory[t, row, j] * o * (1 - o)
                carry[row, j] = down * f


class Scan(torch.autograd.Function):
    """Gates before their functions to outputs and the last memory."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor) -> tuple[Tensor, Tensor]:
        hidden = gates.shape[2] // 3
        active = gates.detach().clone()
        active[:, :, :hidden].tanh_()
        active[:, :, hidden:].sigmoid_()
        outputs = gates.new_empty((*gates.shape[:2], hidden))
        memory = torch.empty_like(outputs)
        _forwards(active.numpy(), memory.numpy(), outputs.numpy())
        ctx.active, ctx.memory = active, memory
        return outputs, memory[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        above, last = gradients
        result: Tensor = ctx.active.clone()
        carry = last.clone()
        _backwards(result.numpy(), ctx.memory.numpy(), above.contiguous().numpy(), carry.numpy())
        return result
