"""Arithmetic in bfloat16: products in half the bytes, weights and gradients kept in float32."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tenor.errors import UsageError
from tenor.models.batch import Batch
from tenor.models.classifier import CELLS


def set_precision(model: nn.Module, precision: str, device: torch.device) -> None:
    """Make the model's forward pass run in that precision; its logits are float32 for the loss."""
    if precision != "bf16":
        return
    inner = model.forward

    def forward(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            logits: Tensor = inner(batch)
        return logits.float()

    model.forward = forward


def check_precision(precision: str, cell: str, device: torch.device) -> None:
    """Refuse bfloat16 where the cell cannot be trained in it, found by trying: oneDNN tells in no other way."""
    if precision != "bf16" or (reason := _why_not(cell, device)) is None:
        return
    can = [name for name in CELLS if name != cell and _why_not(name, device) is None]
    remedy = " or ".join(["use --precision fp32", *(f"--cell {name}" for name in can)])
    raise UsageError(f"--precision bf16 cannot train the cell {cell} on this {device.type} ({reason})", remedy=remedy)


def _why_not(cell: str, device: torch.device) -> str | None:
    probe = CELLS[cell](8, 8).to(device)
    inputs = torch.zeros(2, 2, 8, device=device)
    try:
        with torch.autocast(device.type, torch.bfloat16):
            outputs = probe(inputs)[0]
        outputs.float().sum().backward()
    except RuntimeError as error:
        return str(error).split(". ")[0].splitlines()[0]
    return None
