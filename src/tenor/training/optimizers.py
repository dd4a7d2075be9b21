"""Update rules that serve whole tensors and touched rows alike.

A rule is written once, for a weight, its gradient and its state. For an embedding table the step's rows of weight and
state are gathered, updated and put back, so rows that no sample touched keep their weights and their state (the "lazy"
form of torch.optim.SparseAdam); everything else is updated whole, exactly as torch.optim does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from tenor.models.embedding import RowEmbedding
from tenor.training.row_updates import adam_rows

State = dict[str, Tensor]


class Rule(Protocol):
    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the tensors kept beside each weight."""

    def update(self, weight: Tensor, grad: Tensor, state: State, step: int, lr: float) -> None: ...


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum, as torch.optim.SGD."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return ("velocity",) if self.momentum else ()

    def update(self, weight: Tensor, grad: Tensor, state: State, step: int, lr: float) -> None:
        if self.weight_decay:
            grad = grad.add(weight, alpha=self.weight_decay)
        if self.momentum:
            velocity = state["velocity"].mul_(self.momentum).add_(grad)
            grad = grad.add(velocity, alpha=self.momentum) if self.nesterov else velocity
        weight.add_(grad, alpha=-lr)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019), as torch.optim.AdamW."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    slots: tuple[str, ...] = ("mean", "square")

    def update(self, weight: Tensor, grad: Tensor, state: State, step: int, lr: float) -> None:
        if self.weight_decay:
            weight.mul_(1.0 - lr * self.weight_decay)
        mean = state["mean"].lerp_(grad, 1.0 - self.beta1)
        square = state["square"].mul_(self.beta2).addcmul_(grad, grad, value=1.0 - self.beta2)
        scale = math.sqrt(1.0 - self.beta2**step)
        weight.addcdiv_(mean, (square.sqrt() / scale).add_(self.eps), value=-lr / (1.0 - self.beta1**step))

    def update_in_one_pass(
        self, weight: Tensor, grad: Tensor, state: State, rows: Tensor | None, step: int, lr: float
    ) -> None:
        """As `update` on `weight[rows]`, or on all of it."""
        scale, rate = 1.0 / math.sqrt(1.0 - self.beta2**step), lr / (1.0 - self.beta1**step)
        keep = 1.0 - lr * self.weight_decay
        numbers = [keep, 1.0 - self.beta1, self.beta2, 1.0 - self.beta2, scale, self.eps, rate]
        adam_rows(weight, state, grad, rows, numbers)


@dataclass(frozen=True)
class Adagrad:
    """Adagrad (Duchi et al. 2011), as torch.optim.Adagrad."""

    eps: float = 1e-10
    weight_decay: float = 0.0
    slots: tuple[str, ...] = ("sum",)

    def update(self, weight: Tensor, grad: Tensor, state: State, step: int, lr: float) -> None:
        if self.weight_decay:
            grad = grad.add(weight, alpha=self.weight_decay)
        total = state["sum"].addcmul_(grad, grad)
        weight.addcdiv_(grad, total.sqrt().add_(self.eps), value=-lr)


def make_rule(name: str, momentum: float, weight_decay: float) -> Rule:
    """The rule of that name; `momentum` is for SGD alone."""
    if name == "sgd":
        return SGD(momentum, weight_decay)
    return Adam(weight_decay=weight_decay) if name == "adam" else Adagrad(weight_decay=weight_decay)


class Optimizer:
    """A rule over a model's parameters and embedding tables."""

    def __init__(self, model: nn.Module, rule: Rule) -> None:
        self.rule = rule
        self.step_count = 0
        self.tables = {
            f"{name}.weight": module for name, module in model.named_modules() if isinstance(module, RowEmbedding)
        }
        self.weights = {name: weight.detach() for name, weight in model.named_parameters()}
        self._parameters = {name: p for name, p in model.named_parameters() if name not in self.tables}
        self.state = {
            name: {slot: torch.zeros_like(weight) for slot in rule.slots} for name, weight in self.weights.items()
        }

    def narrow(self, names: Collection[str]) -> None:
        """Update these weights only; `weights` still holds all of the model's."""
        self.tables = {name: table for name, table in self.tables.items() if name in names}
        self._parameters = {name: parameter for name, parameter in self._parameters.items() if name in names}
        self.state = {name: slots for name, slots in self.state.items() if name in names}

    @property
    def own(self) -> dict[str, Tensor]:
        """The weights that it updates."""
        return {name: self.weights[name] for name in self.state}

    def gradients(self) -> Iterator[tuple[str, Tensor]]:
        """(name, gradient) in the model's order: a parameter's own, or that of a table's touched rows."""
        for name, parameter in self._parameters.items():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            yield name, parameter.grad
        for name, table in self.tables.items():
            leaf = table.leaf
            if leaf is not None:
                if leaf.grad is None:
                    leaf.grad = torch.zeros_like(leaf)
                yield name, leaf.grad

    def zero_gradients(self) -> None:
        for parameter in self._parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.step_count += 1
        for name, grad in self.gradients():
            weight, state = self.weights[name], self.state[name]
            rows = self.tables[name].rows if name in self.tables else None
            if isinstance(self.rule, Adam) and weight.device.type == "cpu":
                self.rule.update_in_one_pass(weight, grad, state, rows, self.step_count, lr)
                continue
            if rows is None:
                self.rule.update(weight, grad, state, self.step_count, lr)
                continue
            part = {slot: full.index_select(0, rows) for slot, full in state.items()}
            touched = weight.index_select(0, rows)
            self.rule.update(touched, grad, part, self.step_count, lr)
            weight.index_copy_(0, rows, touched)
            for slot, full in state.items():
                full.index_copy_(0, rows, part[slot])

    def state_dict(self) -> dict[str, Tensor]:
        """Flat: 'slot/weight name' to tensor."""
        return {f"{slot}/{name}": value for name, slots in self.state.items() for slot, value in slots.items()}

    def load_state_dict(self, tensors: Mapping[str, Tensor], step_count: int) -> None:
        self.step_count = step_count
        for key, value in self.state_dict().items():
            value.copy_(tensors[key])
