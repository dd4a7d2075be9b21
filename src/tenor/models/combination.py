"""How the logits of a model's parts become probabilities: a few numbers that are fitted on the validation rows.

The combined logits are Σ scale × logits of a part + shift. Fitting the scales and shifts makes the probabilities
calibrated as well (Platt 1999), and on the rows of the fit the log loss is never above that of a single part.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Numbers = NDArray[np.float64]

MAX_STEPS = 50
TOLERANCE = 1e-10


class Combination(nn.Module):
    """The fitted numbers, which are saved with the weights but not trained."""

    scales: Tensor  # (parts,)
    shifts: Tensor  # (outputs,)
    threshold: Tensor  # (1,) of the probability of the second of two classes

    def __init__(self, num_parts: int, num_outputs: int) -> None:
        super().__init__()
        self.register_buffer("scales", torch.empty(num_parts))
        self.register_buffer("shifts", torch.empty(num_outputs))
        self.register_buffer("threshold", torch.empty(1))

    def start(self) -> None:
        """The mean of the parts."""
        self.scales.fill_(1.0 / len(self.scales))
        self.shifts.zero_()
        self.threshold.fill_(0.5)

    def set(self, scales: Numbers, shifts: Numbers) -> None:
        self.scales.copy_(torch.from_numpy(scales))
        self.shifts.copy_(torch.from_numpy(shifts))

    def forward(self, logits: Tensor) -> Tensor:
        """From (parts, batch, outputs) to (batch, outputs)."""
        combined: Tensor = torch.tensordot(self.scales.to(logits), logits, dims=1) + self.shifts.to(logits)
        return combined


def fit_combination(logits: Numbers, labels: NDArray[np.int64], weights: Numbers) -> tuple[Numbers, Numbers]:
    """Scales and shifts with the smallest log loss, by Newton's method.

    A normal prior of width 1 around the mean of the parts keeps the fit sensible on few rows, and finite where the
    parts separate the classes perfectly.

    Args:
        logits: (parts, rows, outputs); one output for two classes.
        labels: (rows,)
        weights: (rows,) of each row in the loss.

    Returns:
        (scales, shifts): (parts,) and (outputs,).
    """
    num_parts, rows, outputs = logits.shape
    features = np.concatenate([logits, np.broadcast_to(np.eye(outputs)[:, None], (outputs, rows, outputs))])
    start = np.concatenate([np.full(num_parts, 1.0 / num_parts), np.zeros(outputs)])
    values = start
    share, ridge = weights / weights.sum(), 1.0 / rows
    for _ in range(MAX_STEPS):
        slope, curve = _derivatives(values, features, labels, share)
        step = np.linalg.solve(curve + ridge * np.eye(len(values)), slope + ridge * (values - start))
        values = values - step * min(1.0, 2.0 / np.abs(step).max(initial=1e-300))
        if np.abs(step).max() < TOLERANCE:
            break
    return values[:num_parts], values[num_parts:]


def _derivatives(
    values: Numbers, features: Numbers, labels: NDArray[np.int64], share: Numbers
) -> tuple[Numbers, Numbers]:
    """The gradient and the Hessian of the mean log loss; `features` is (values, rows, outputs)."""
    logits = np.tensordot(values, features, 1)  # (rows, outputs)
    if logits.shape[1] == 1:
        chances = 1.0 / (1.0 + np.exp(-np.clip(logits, -500.0, 500.0)))
        errors = chances - labels[:, None]
        spread = chances * (1.0 - chances)
        flat = features[:, :, 0]
        return flat @ (share * errors[:, 0]), (flat * (share * spread[:, 0])) @ flat.T
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    errors = chances - np.eye(logits.shape[1])[labels]
    slope = np.einsum("vro,ro,r->v", features, errors, share)
    means = np.einsum("vro,ro->vr", features, chances)
    curve = np.einsum("vro,wro,ro,r->vw", features, features, chances, share, optimize=True)
    return slope, curve - np.einsum("vr,wr,r->vw", means, means, share)
