"""Optimizer state that each worker has for itself: gathered into a checkpoint, and given back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tenor.training.groups import Group
from tenor.training.optimizers import Optimizer


def gather_state(optimizer: Optimizer, group: Group) -> dict[str, Tensor]:
    """'rank/slot/weight' to tensor, of all workers but the first, whose state a checkpoint holds anyway."""
    own = optimizer.state_dict()
    if not own or group.size == 1:
        return {}
    every = group.gather(torch.cat([value.flatten() for value in own.values()])).view(group.size, -1)
    found = {}
    for rank in range(1, group.size):
        parts = every[rank].split([value.numel() for value in own.values()])
        for (name, value), part in zip(own.items(), parts, strict=True):
            found[f"{rank}/{name}"] = part.view_as(value)
    return found


def restore_state(optimizer: Optimizer, group: Group, state: Mapping[str, Tensor]) -> None:
    """A worker that the checkpoint does not know goes on with the state of the first."""
    for name, value in optimizer.state_dict().items():
        if (saved := state.get(f"{group.rank}/{name}")) is not None:
            value.copy_(saved)
