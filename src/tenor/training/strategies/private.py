"""Optimizer state that each worker has for itself: gathered into a checkpoint, and given back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from tenor.training.groups import Group
from tenor.training.optimizers import Optimizer


def gather_state(optimizer: Optimizer, group: Group) -> dict[str, Tensor]:
    """'rank/slot/weight' to tensor, of all workers but the first, whose state a checkpoint holds anyway."""
    return {} if group.size == 1 else gather_tensors(optimizer.state_dict(), group, range(1, group.size))


def gather_tensors(own: Mapping[str, Tensor], group: Group, ranks: Iterable[int]) -> dict[str, Tensor]:
    """'rank/name' to the tensor that each of the ranks has of that name."""
    if not own:
        return {}
    every = group.gather(torch.cat([value.flatten() for value in own.values()])).view(group.size, -1)
    found = {}
    for rank in ranks:
        parts = every[rank].split([value.numel() for value in own.values()])
        for (name, value), part in zip(own.items(), parts, strict=True):
            found[f"{rank}/{name}"] = part.view_as(value)
    return found


def restore_state(optimizer: Optimizer, group: Group, state: Mapping[str, Tensor]) -> None:
    """A worker that the checkpoint does not know goes on with the state of the first."""
    restore_tensors(optimizer.state_dict(), group, state)


def restore_tensors(own: Mapping[str, Tensor], group: Group, state: Mapping[str, Tensor]) -> None:
    for name, value in own.items():
        if (saved := state.get(f"{group.rank}/{name}")) is not None:
            value.copy_(saved)
