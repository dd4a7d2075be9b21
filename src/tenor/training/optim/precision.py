"""bfloat16: matrix products in half the bytes, weights and gradients kept in float32."""

from __future__ import annotations

import torch

from tenor.errors import UsageError
from tenor.models.deep.cells import CELLS, make_cell
from tenor.models.stage import StagedModel


def set_precision(model: StagedModel, precision: str) -> None:
    """Let the model's forward pass run in that precision. Its logits stay float32 for the loss."""
    if precision == "bf16":
        model.product_dtype = torch.bfloat16


def check_precision(precision: str, cell: str, device: torch.device) -> None:
    """Refuse bfloat16 if the cell cannot be trained in it, which only a trial shows: oneDNN offers no query."""
    if precision != "bf16" or (reason := _why_not(cell, device)) is None:
        return
    able = [name for name in CELLS if name != cell and _why_not(name, device) is None]
    remedy = " or ".join(["use --precision fp32", *(f"--cell {name}" for name in able)])
    raise UsageError(f"--precision bf16 cannot train the cell {cell} on this {device.type} ({reason})", remedy=remedy)


def _why_not(cell: str, device: torch.device) -> str | None:
    """Why a cell cannot be trained in bfloat16 on a device; None if it can."""
    probe = make_cell(cell, 8, 8).to(device)
    inputs = torch.zeros(2, 2, 8, device=device)
    try:
        with torch.autocast(device.type, torch.bfloat16):
            outputs = probe(inputs)[0]
        outputs.float().sum().backward()
    except RuntimeError as error:
        return str(error).split(". ")[0].splitlines()[0]
    return None
