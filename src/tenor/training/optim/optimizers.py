"""Update rules for whole tensors and for touched rows of embedding tables.

A rule is written once, for a weight, its gradient and its state. For an embedding table, the touched rows of weight and
state are gathered, updated and written back. Rows that no sample touched keep their weights and their state (the "lazy"
form of torch.optim.SparseAdam). All other weights are updated as a whole, exactly as in torch.optim.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from tenor.models.embedding import RowEmbedding
from tenor.models.weights import copy_saved
from tenor.training.optim.row_updates import adagrad_rows, adam_rows

State = dict[str, Tensor]


class Rule(Protocol):
    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the tensors kept beside each weight."""

    @property
    def start(self) -> float:
        """The number that these tensors hold at the beginning."""

    def update(self, weight: Tensor, grad: Tensor, state: State, step: int, lr: float) -> None:
        """Update a weight and its state in place; steps count from 1."""


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum, as torch.optim.SGD."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    start: float = 0.0

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
    start: float = 0.0

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
        """The same as `update`, on `weight[rows]` or on the whole weight."""
        scale, rate = 1.0 / math.sqrt(1.0 - self.beta2**step), lr / (1.0 - self.beta1**step)
        keep = 1.0 - lr * self.weight_decay
        numbers = [keep, 1.0 - self.beta1, self.beta2, 1.0 - self.beta2, scale, self.eps, rate]
        adam_rows(weight, state, grad, rows, numbers)


@dataclass(frozen=True)
class Adagrad:
    """Adagrad (Duchi et al. 2011), as torch.optim.Adagrad with `start` as initial_accumulator_value."""

    eps: float = 1e-10
    weight_decay: float = 0.0
    start: float = 0.0
    slots: tuple[str, ...] = ("sum",)

    def update(self, weight: Tensor, grad: Tensor, state: State, step: int, lr: float) -> None:
        if self.weight_decay:
            grad = grad.add(weight, alpha=self.weight_decay)
        total = state["sum"].addcmul_(grad, grad)
        weight.addcdiv_(grad, total.sqrt().add_(self.eps), value=-lr)

    def update_in_one_pass(
        self, weight: Tensor, grad: Tensor, state: State, rows: Tensor | None, step: int, lr: float
    ) -> None:
        """The same as `update`, on `weight[rows]` or on the whole weight."""
        adagrad_rows(weight, state, grad, rows, [self.weight_decay, self.eps, lr])


def make_rule(name: str, momentum: float, weight_decay: float) -> Rule:
    """The rule of that name; only SGD uses `momentum`."""
    if name == "sgd":
        return SGD(momentum, weight_decay)
    return Adam(weight_decay=weight_decay) if name == "adam" else Adagrad(weight_decay=weight_decay)


@dataclass(frozen=True)
class RuleOfPart:
    """The rule for weights whose name begins with `prefix`, and their learning rate as a multiple of the others'."""

    prefix: str
    rule: Rule
    rate: float


class Optimizer:
    """Applies rules to the parameters and embedding tables of a model: `rule`, or that of a part of the model."""

    def __init__(self, model: nn.Module, rule: Rule, parts: Sequence[RuleOfPart] = ()) -> None:
        self.parts = (*parts, RuleOfPart("", rule, 1.0))
        self.step_count = 0
        self.frozen: frozenset[str] = frozenset()
        self.tables = {
            f"{name}.weight": module for name, module in model.named_modules() if isinstance(module, RowEmbedding)
        }
        self.weights = {name: weight.detach() for name, weight in model.named_parameters()}
        self._parameters = {name: p for name, p in model.named_parameters() if name not in self.tables}
        self.state = {name: self._first_state(name, weight) for name, weight in self.weights.items()}

    def _part_of(self, name: str) -> RuleOfPart:
        return next(part for part in self.parts if name.startswith(part.prefix))

    def _first_state(self, name: str, weight: Tensor) -> State:
        rule = self._part_of(name).rule
        return {slot: torch.full_like(weight, rule.start) for slot in rule.slots}

    def narrow(self, names: Collection[str]) -> None:
        """Update only these weights from now on. `weights` still holds all weights of the model."""
        self.tables = {name: table for name, table in self.tables.items() if name in names}
        self._parameters = {name: parameter for name, parameter in self._parameters.items() if name in names}
        self.state = {name: slots for name, slots in self.state.items() if name in names}

    @property
    def own(self) -> dict[str, Tensor]:
        """The weights that this optimizer updates."""
        return {name: self.weights[name] for name in self.state}

    def freeze(self, names: Collection[str]) -> None:
        """Keep these tables fixed from now on, and no others: their gradients are zeros and no step changes them."""
        self.frozen = frozenset(names)

    def gradients(self) -> Iterator[tuple[str, Tensor]]:
        """(name, gradient) in the model's order; for a table, the gradient of its touched rows."""
        for name, parameter in self._parameters.items():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            yield name, parameter.grad
        for name, table in self.tables.items():
            leaf = table.leaf
            if leaf is not None:
                if leaf.grad is None or name in self.frozen:
                    leaf.grad = torch.zeros_like(leaf)
                yield name, leaf.grad

    def zero_gradients(self) -> None:
        for parameter in self._parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.step_count += 1
        for name, grad in self.gradients():
            if name in self.frozen:
                continue
            weight, state, part = self.weights[name], self.state[name], self._part_of(name)
            rule, rate = part.rule, part.rate * lr
            rows = self.tables[name].rows if name in self.tables else None
            if isinstance(rule, Adam | Adagrad) and weight.device.type == "cpu":
                rule.update_in_one_pass(weight, grad, state, rows, self.step_count, rate)
            elif rows is None:
                rule.update(weight, grad, state, self.step_count, rate)
            else:
                self._update_rows(rule, name, grad, rows, rate)

    def _update_rows(self, rule: Rule, name: str, grad: Tensor, rows: Tensor, rate: float) -> None:
        """Gather the touched rows of weight and state, update them, and write them back."""
        weight, state = self.weights[name], self.state[name]
        part = {slot: full.index_select(0, rows) for slot, full in state.items()}
        touched = weight.index_select(0, rows)
        rule.update(touched, grad, part, self.step_count, rate)
        weight.index_copy_(0, rows, touched)
        for slot, full in state.items():
            full.index_copy_(0, rows, part[slot])

    def state_dict(self) -> dict[str, Tensor]:
        """A map from 'slot/weight name' to tensor."""
        return {f"{slot}/{name}": value for name, slots in self.state.items() for slot, value in slots.items()}

    def load_state_dict(self, tensors: Mapping[str, Tensor], step_count: int) -> None:
        self.step_count = step_count
        for key, value in self.state_dict().items():
            copy_saved(value, tensors, key)
