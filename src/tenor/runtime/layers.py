"""The layers of the deep part in NumPy, for every cell, direction and pooling; padding is at the end of each row.

The convolution with max pooling, which the default preset uses, has a faster way: see `convolution.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.models.spec import DeepSpec

Floats = NDArray[Any]
Weights = Mapping[str, Floats]
Lengths = NDArray[np.int64]


def pooled_states(spec: DeepSpec, weights: Weights, vectors: Floats, lengths: Lengths) -> Floats:
    """(rows, width): the word vectors of some rows through all layers and the pooling.

    Args:
        spec: The architecture.
        weights: The weights of the deep part by name, such as `forwards.0.bias`.
        vectors: (time, rows, width)
        lengths: (rows,): words of each row, at least 1.
    """
    states, flip = vectors, _reversing(lengths, len(vectors))
    for layer in range(spec.layers):
        compute = CELLS.get(spec.cell) or partial(_with_torch, spec)
        outputs = compute(_of_layer(weights, f"forwards.{layer}."), states)
        if spec.bidirectional:
            mirrored = np.take_along_axis(states, flip, 0)
            back = compute(_of_layer(weights, f"backwards.{layer}."), mirrored)
            outputs = np.concatenate([outputs, np.take_along_axis(back, flip, 0)], axis=2)
        states = outputs
    return _POOLINGS[spec.pooling](states, lengths, spec.bidirectional)


def _of_layer(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): array for name, array in weights.items() if name.startswith(prefix)}


def _reversing(lengths: Lengths, time: int) -> NDArray[np.int64]:
    """An index (time, rows, 1) that reverses each row within its own length."""
    steps = np.arange(time)[:, None]
    return np.where(steps < lengths, lengths - 1 - steps, steps)[:, :, None]


def _sigmoid(values: Floats) -> Floats:
    result: Floats = 0.5 * (1.0 + np.tanh(0.5 * values))  # does not overflow
    return result


def _conv(weights: Weights, inputs: Floats) -> Floats:
    time, rows, width = inputs.shape
    weight = weights["weight"]
    window = weight.shape[1] // width
    before = np.concatenate([np.zeros((window - 1, rows, width), inputs.dtype), inputs])
    total: Floats = np.broadcast_to(weights["bias"], (time, rows, len(weight))).copy()
    for k in range(window):
        total += before[k : k + time] @ weight[:, k * width : (k + 1) * width].T
    np.maximum(total, 0.0, out=total)
    return total


def _qrnn(weights: Weights, inputs: Floats) -> Floats:
    gates = inputs @ weights["weight_now"].T + weights["bias"]
    gates[1:] += inputs[:-1] @ weights["weight_before"].T
    z, f, o = np.split(gates, 3, axis=2)
    z, f, o = np.tanh(z), _sigmoid(f), _sigmoid(o)
    memory: Floats = np.zeros_like(z[0])
    outputs: Floats = np.empty_like(z)
    for t in range(len(z)):
        memory = z[t] + f[t] * (memory - z[t])
        outputs[t] = o[t] * memory
    return outputs


def _rnn(weights: Weights, inputs: Floats) -> Floats:
    given = inputs @ weights["weight_ih_l0"].T + weights["bias_ih_l0"] + weights["bias_hh_l0"]
    outputs, state = np.empty_like(given), np.zeros_like(given[0])
    for t in range(len(given)):
        outputs[t] = state = np.tanh(given[t] + state @ weights["weight_hh_l0"].T)
    return outputs


def _gru(weights: Weights, inputs: Floats) -> Floats:
    given = inputs @ weights["weight_ih_l0"].T + weights["bias_ih_l0"]  # (time, rows, 3 hidden): reset, update, new
    hidden = given.shape[2] // 3
    outputs, state = np.empty((*given.shape[:2], hidden), given.dtype), np.zeros((given.shape[1], hidden), given.dtype)
    for t in range(len(given)):
        own = state @ weights["weight_hh_l0"].T + weights["bias_hh_l0"]
        gates = _sigmoid(given[t, :, : 2 * hidden] + own[:, : 2 * hidden])
        new = np.tanh(given[t, :, 2 * hidden :] + gates[:, :hidden] * own[:, 2 * hidden :])
        outputs[t] = state = new + gates[:, hidden:] * (state - new)
    return outputs


def _lstm(weights: Weights, inputs: Floats) -> Floats:
    given = inputs @ weights["weight_ih_l0"].T + weights["bias_ih_l0"] + weights["bias_hh_l0"]
    hidden = given.shape[2] // 4  # input, forget, new, output
    shape = (given.shape[1], hidden)
    outputs, state, memory = np.empty((len(given), *shape), given.dtype), np.zeros(shape), np.zeros(shape)
    state, memory = state.astype(given.dtype), memory.astype(given.dtype)
    for t in range(len(given)):
        gates = given[t] + state @ weights["weight_hh_l0"].T
        taken, kept, out = (_sigmoid(gates[:, k * hidden : (k + 1) * hidden]) for k in (0, 1, 3))
        memory = kept * memory + taken * np.tanh(gates[:, 2 * hidden : 3 * hidden])
        outputs[t] = state = out * np.tanh(memory)
    return outputs


CELLS: dict[str, Callable[[Weights, Floats], Floats]] = {
    "conv": _conv,
    "qrnn": _qrnn,
    "rnn": _rnn,
    "gru": _gru,
    "lstm": _lstm,
}


def _with_torch(spec: DeepSpec, weights: Weights, inputs: Floats) -> Floats:
    """The outputs of a cell that has no entry in CELLS."""
    import torch

    from tenor.models.deep.cells import make_cell

    cell = make_cell(spec.cell, inputs.shape[2], spec.hidden, spec.window)
    cell.load_state_dict({name: torch.tensor(weight) for name, weight in weights.items()})
    with torch.inference_mode():
        outputs: Floats = cell(torch.tensor(inputs))[0].numpy()
    return outputs


def _real(states: Floats, lengths: Lengths) -> NDArray[np.bool_]:
    return (np.arange(len(states))[:, None] < lengths)[:, :, None]  # (time, rows, 1)


def _max(states: Floats, lengths: Lengths, bidirectional: bool) -> Floats:
    largest: Floats = np.where(_real(states, lengths), states, -np.inf).max(axis=0).astype(states.dtype)
    return largest


def _mean(states: Floats, lengths: Lengths, bidirectional: bool) -> Floats:
    total: Floats = np.where(_real(states, lengths), states, 0.0).sum(axis=0) / lengths[:, None]
    return total.astype(states.dtype)


def _last(states: Floats, lengths: Lengths, bidirectional: bool) -> Floats:
    """The last state of each direction; the backward direction ends at the first word."""
    last: Floats = states[lengths - 1, np.arange(len(lengths))]
    half = states.shape[2] // 2
    return np.concatenate([last[:, :half], states[0, :, half:]], axis=1) if bidirectional else last


def _max_mean(states: Floats, lengths: Lengths, bidirectional: bool) -> Floats:
    return np.concatenate([_max(states, lengths, bidirectional), _mean(states, lengths, bidirectional)], axis=1)


_POOLINGS: dict[str, Callable[[Floats, Lengths, bool], Floats]] = {
    "max": _max,
    "mean": _mean,
    "last": _last,
    "max-mean": _max_mean,
}
