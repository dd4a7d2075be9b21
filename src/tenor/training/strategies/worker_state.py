"""State that each worker keeps for itself, such as its optimizer's: gathered into a checkpoint, and restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from tenor.groups import Group
from tenor.models.weights import copy_saved
from tenor.training.optim.optimizers import Optimizer


def gather_state(optimizer: Optimizer, group: Group) -> dict[str, Tensor]:
    """Map 'rank/slot/weight' to tensors of all workers but the first, whose state is in every checkpoint anyway."""
    return {} if group.size == 1 else gather_tensors(optimizer.state_dict(), group, range(1, group.size))


def gather_tensors(own: Mapping[str, Tensor], group: Group, ranks: Iterable[int]) -> dict[str, Tensor]:
    """Map 'rank/name' to the tensor of that name on each of the ranks."""
    if not own:
        return {}
    gathered = group.gather(torch.cat([value.flatten() for value in own.values()])).view(group.size, -1)
    found = {}
    for rank in ranks:
        parts = gathered[rank].split([value.numel() for value in own.values()])
        for (name, value), part in zip(own.items(), parts, strict=True):
            found[f"{rank}/{name}"] = part.view_as(value)
    return found


def restore_state(optimizer: Optimizer, group: Group, state: Mapping[str, Tensor]) -> None:
    """Restore this worker's optimizer. A worker that the checkpoint does not have keeps the state of the first."""
    restore_tensors(optimizer.state_dict(), group, state)


def restore_tensors(own: Mapping[str, Tensor], group: Group, state: Mapping[str, Tensor]) -> None:
    """Copy the tensors of this rank from the checkpoint, where it has them."""
    for name, value in own.items():
        if (key := f"{group.rank}/{name}") in state:
            copy_saved(value, state, key)
