"""The gradient of one worker's samples: computed in micro-batches, left in place, divided once."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from tenor.training.batch import TrainBatch
from tenor.training.optim.optimizers import Optimizer
from tenor.training.profiling.spans import BACKWARD, FORWARD, OFF, Profiler
from tenor.training.tasks.losses import Objective


def backpropagate(
    model: nn.Module,
    optimizer: Optimizer,
    batch: TrainBatch,
    objective: Objective,
    before_last: Callable[[], None] = lambda: None,
    profile: Profiler = OFF,
) -> tuple[float, float]:
    """Leave the gradient of the *sum* of losses in place; an empty batch leaves zeros.

    Args:
        model: The whole model.
        optimizer: Holds the parameters and the embedding tables that receive gradients.
        batch: This worker's samples. Their micro-batches add up.
        objective: The loss and the weights of the classes.
        before_last: Called before the last micro-batch. From then on, each gradient that backward completes is final.
        profile: Records forward and backward.

    Returns:
        The sum of losses and the sum of weights.
    """
    with profile.span(FORWARD):
        begin_gradients(optimizer, batch)
    if len(batch) == 0:
        return 0.0, 0.0
    losses, weights, count = 0.0, 0.0, batch.num_micro_batches
    micro_batches = batch.micro_batches(count) if count > 1 else [batch]
    for index, micro_batch in enumerate(micro_batches):
        if index == len(micro_batches) - 1:
            before_last()
        with profile.span(FORWARD):
            loss, weight = objective(model(micro_batch), micro_batch.labels)
        with profile.span(BACKWARD):
            loss.backward()
        losses, weights = losses + float(loss.detach()), weights + float(weight)
    return losses, weights


def begin_gradients(optimizer: Optimizer, batch: TrainBatch) -> None:
    """Clear the gradients of the previous step and gather the rows of the tables that this step touches."""
    optimizer.zero_gradients()
    for name, table in optimizer.tables.items():
        table.focus(batch.rows_of(name))


def divide_gradients(optimizer: Optimizer, weight: float) -> None:
    """Turn the gradient of a sum into that of a mean. A worker without samples keeps its zeros."""
    for _, gradient in optimizer.gradients():
        gradient.div_(weight or 1.0)
