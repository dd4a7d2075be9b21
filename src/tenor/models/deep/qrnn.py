"""The quasi-recurrent cell: its gates read the inputs alone, so all matrix products run before the recurrence.

The network of Bradbury et al. 2017 with windows of two inputs and fo-pooling:

    z = tanh(W_z [x(t-1), x(t)] + b_z)    f, o = sigmoid(…)    c(t) = f c(t-1) + (1 - f) z    h(t) = o c(t)

The recurrence itself is arithmetic on vectors: one compiled pass forwards, one backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tenor.compiled import compiled

COMPILED = (torch.float32, torch.float64)


class QRNN(nn.Module):
    """From (time, batch, width) to (time, batch, hidden) and the last memory; called like nn.LSTM."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.weight_before = nn.Parameter(torch.empty(3 * hidden, width))  # of the previous input
        self.weight_now = nn.Parameter(torch.empty(3 * hidden, width))
        self.bias = nn.Parameter(torch.empty(3 * hidden))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        weights = (self.weight_before, self.weight_now, self.bias)
        if inputs.device.type == "cpu" and inputs.dtype in COMPILED and not torch.is_autocast_enabled("cpu"):
            outputs, memory = CompiledQRNN.apply(inputs, *weights)  # type: ignore[no-untyped-call]
            return outputs, memory
        return plain_qrnn(inputs, *weights)


def plain_qrnn(inputs: Tensor, before: Tensor, now: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The cell in torch's own operations, for devices and types that the compiled pass does not support."""
    gates = nn.functional.linear(inputs, now, bias)
    gates = torch.cat([gates[:1], gates[1:] + nn.functional.linear(inputs[:-1], before)])  # (time, batch, 3 hidden)
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
    """`gates` holds z, f and o side by side, after tanh and sigmoid. Slices let the compiler vectorise the loop."""
    time, batch, hidden = outputs.shape
    past = np.zeros((batch, hidden), gates.dtype)
    for t in range(time):
        for row in range(batch):
            z, f = gates[t, row, :hidden], gates[t, row, hidden : 2 * hidden]
            o, c, kept, out = gates[t, row, 2 * hidden :], past[row], memory[t, row], outputs[t, row]
            for j in range(hidden):
                c[j] = z[j] + f[j] * (c[j] - z[j])
                kept[j] = c[j]
                out[j] = o[j] * c[j]


@compiled
def _backwards(
    gates: NDArray[Any], memory: NDArray[Any], above: NDArray[Any], carry: NDArray[Any], result: NDArray[Any]
) -> None:
    """Write the gradient of the gates before tanh and sigmoid into `result`."""
    time, batch, hidden = above.shape
    nothing, one = np.zeros(hidden, gates.dtype), gates.dtype.type(1)
    for t in range(time - 1, -1, -1):
        for row in range(batch):
            z, f = gates[t, row, :hidden], gates[t, row, hidden : 2 * hidden]
            o, c, up, down = gates[t, row, 2 * hidden :], memory[t, row], above[t, row], carry[row]
            dz, df = result[t, row, :hidden], result[t, row, hidden : 2 * hidden]
            do = result[t, row, 2 * hidden :]
            past = memory[t - 1, row] if t else nothing
            for j in range(hidden):
                total = up[j] * o[j] + down[j]
                dz[j] = total * (one - f[j]) * (one - z[j] * z[j])
                df[j] = total * (past[j] - z[j]) * f[j] * (one - f[j])
                do[j] = up[j] * c[j] * o[j] * (one - o[j])
                down[j] = total * f[j]


class CompiledQRNN(torch.autograd.Function):
    """The whole cell: matrix products over all steps at once, and one pass over the steps."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, before: Tensor, now: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        time, batch, width = inputs.shape
        hidden = len(bias) // 3
        flat = inputs.reshape(time * batch, width)
        gates = torch.addmm(bias, flat, now.t())
        gates[batch:].addmm_(flat[:-batch], before.t())
        gates[:, :hidden].tanh_()
        gates[:, hidden:].sigmoid_()
        gates = gates.view(time, batch, 3 * hidden)
        outputs = inputs.new_empty((time, batch, hidden))
        memory = torch.empty_like(outputs)
        _forwards(gates.numpy(), memory.numpy(), outputs.numpy())
        ctx.save_for_backward(inputs, before, now)
        ctx.gates, ctx.memory = gates, memory
        return outputs, memory[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        inputs, before, now = ctx.saved_tensors
        above, last = gradients
        time, batch, width = inputs.shape
        result = torch.empty_like(ctx.gates)
        _backwards(
            ctx.gates.numpy(), ctx.memory.numpy(), above.contiguous().numpy(), last.clone().numpy(), result.numpy()
        )
        flat, grad = inputs.reshape(time * batch, width), result.view(time * batch, -1)
        to_inputs = grad @ now
        to_inputs[:-batch].addmm_(grad[batch:], before)
        return (to_inputs.view_as(inputs), grad[batch:].t() @ flat[:-batch], grad.t() @ flat, grad.sum(0))
