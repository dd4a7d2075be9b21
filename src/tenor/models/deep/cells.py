"""The cells of the deep part by name: a table that loads no torch, so that settings can read it.

A new cell needs one file and one entry here. Its class is called with (input width, hidden width), and with the window
as well if it has one. Its `forward` takes inputs of shape (time, batch, input width) and returns a tuple that begins
with outputs of shape (time, batch, hidden width), as `torch.nn.LSTM` does. The output at time t depends only on inputs
up to t. A cell whose outputs are never negative may also have a method `largest(inputs, lengths)`, which computes its
outputs and max pooling together.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class CellTraits:
    """The class of a cell, which is imported only when a model uses it."""

    implementation: str  # "module:class"
    forget_gate: int | None = None  # the number of the gate whose bias starts at 1, so that it begins open
    has_window: bool = False  # whether an output reads only the last inputs, as many as `window` says


CELLS = {
    "lstm": CellTraits("torch.nn:LSTM", forget_gate=1),
    "gru": CellTraits("torch.nn:GRU"),
    "rnn": CellTraits("torch.nn:RNN"),
    "qrnn": CellTraits("tenor.models.deep.qrnn:QRNN"),
    "conv": CellTraits("tenor.models.deep.conv:Conv", has_window=True),
}


def make_cell(name: str, width: int, hidden: int, window: int = 1) -> nn.Module:
    """A cell of one layer and one direction; `window` matters only to a cell that has one."""
    traits = CELLS[name]
    sizes = (width, hidden, window) if traits.has_window else (width, hidden)
    cell: nn.Module = pkgutil.resolve_name(traits.implementation)(*sizes)
    return cell
