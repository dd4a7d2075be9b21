"""Update rules compared with torch.optim, on whole tensors and on touched rows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tenor.models.embedding import RowEmbedding
from tenor.training.optim.optimizers import SGD, Adagrad, Adam, Optimizer, Rule

RULES = [
    (SGD(), lambda p: torch.optim.SGD(p, lr=0.1)),
    (SGD(0.9, 0.01), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)),
    (SGD(0.9, 0.0, True), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    (Adam(), lambda p: torch.optim.Adam(p, lr=0.1)),
    (Adam(weight_decay=0.1), lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1)),
    (Adagrad(weight_decay=0.01), lambda p: torch.optim.Adagrad(p, lr=0.1, weight_decay=0.01)),
]


@pytest.mark.parametrize(("rule", "reference"), RULES)
def test_a_rule_equals_torch(rule: Rule, reference) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    ours, theirs = nn.Linear(5, 3).double(), nn.Linear(5, 3).double()
    theirs.load_state_dict(ours.state_dict())
    optimizer, peer = Optimizer(ours, rule), reference(theirs.parameters())
    for _ in range(8):
        inputs = torch.randn(4, 5, dtype=torch.float64)
        for model in (ours, theirs):
            model.zero_grad()
            model(inputs).square().sum().backward()
        optimizer.step(0.1)
        peer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("rule", "reference"), RULES)
def test_the_plain_form_of_a_rule_equals_torch(rule: Rule, reference) -> None:  # type: ignore[no-untyped-def]
    """Processors use a compiled form of some rules; other devices use this one."""
    torch.manual_seed(0)
    weight = torch.randn(5, 3, dtype=torch.float64)
    theirs = nn.Parameter(weight.clone())
    peer, state = reference([theirs]), {slot: torch.full_like(weight, rule.start) for slot in rule.slots}
    for step in range(1, 9):
        theirs.grad = torch.randn(5, 3, dtype=torch.float64)
        rule.update(weight, theirs.grad.clone(), state, step, 0.1)
        peer.step()
    torch.testing.assert_close(weight, theirs.detach(), rtol=1e-12, atol=1e-12)


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = RowEmbedding(10, 4)
        nn.init.normal_(self.words.weight)


def test_rows_equal_torch_sparse_adam_and_other_rows_stay() -> None:
    torch.manual_seed(0)
    model = Table()
    start = model.words.weight.clone()
    peer = nn.Embedding(10, 4, sparse=True, _weight=start.clone())
    optimizer, reference = Optimizer(model, Adam()), torch.optim.SparseAdam(peer.parameters(), lr=0.1)
    for rows in ([1, 3, 7], [3, 4], [1, 3]):
        index = torch.tensor(rows)
        scale = torch.randn(len(rows), 4)
        model.words.focus(index)
        (model.words(torch.arange(len(rows))) * scale).sum().backward()
        optimizer.step(0.1)
        reference.zero_grad()
        (peer(index) * scale).sum().backward()
        reference.step()
    torch.testing.assert_close(model.words.weight.detach(), peer.weight.detach())
    untouched = [0, 2, 5, 6, 8, 9]
    assert torch.equal(model.words.weight[untouched], start[untouched])
    assert float(optimizer.state["words.weight"]["mean"][untouched].abs().sum()) == 0.0


@pytest.mark.parametrize("rule", [SGD(0.9, 0.01), Adagrad(weight_decay=0.01), Adam(weight_decay=0.1)])
def test_each_row_is_updated_like_a_separate_weight(rule: Rule) -> None:
    """Compared with one torch optimizer per row, which steps only when its row is touched."""
    torch.manual_seed(0)
    model = Table().double()
    optimizer = Optimizer(model, rule)
    peers = [row.clone().requires_grad_() for row in model.words.weight]
    make = {SGD: torch.optim.SGD, Adagrad: torch.optim.Adagrad, Adam: torch.optim.AdamW}[type(rule)]
    more = {"momentum": 0.9} if isinstance(rule, SGD) else {}
    steppers = [make([row], lr=0.1, weight_decay=rule.weight_decay, **more) for row in peers]  # type: ignore[attr-defined]
    for rows in ([1, 3, 7], [3, 4], [1, 3]) if not isinstance(rule, Adam) else ([1, 3, 7], [1, 3, 7]):
        scale = torch.randn(len(rows), 4, dtype=torch.float64)
        model.words.focus(torch.tensor(rows))
        (model.words(torch.arange(len(rows))) * scale).sum().backward()
        optimizer.step(0.1)
        for row, factor in zip(rows, scale, strict=True):
            peers[row].grad = factor.clone()
            steppers[row].step()
    torch.testing.assert_close(model.words.weight.detach(), torch.stack([row.detach() for row in peers]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_pass_over_rows_equals_the_rule(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rule = Adam(weight_decay=0.1)
    weight = torch.randn(50, 7, dtype=dtype)
    state = {slot: torch.rand(50, 7, dtype=dtype) for slot in rule.slots}
    rows, grad = torch.tensor([3, 4, 9, 48]), torch.randn(4, 7, dtype=dtype)
    part = {slot: full[rows] for slot, full in state.items()}
    touched, before = weight[rows], weight.clone()
    rule.update(touched, grad, part, 3, 0.01)
    rule.update_in_one_pass(weight, grad, state, rows, 3, 0.01)
    torch.testing.assert_close(weight[rows], touched)
    for slot, full in state.items():
        torch.testing.assert_close(full[rows], part[slot])
    others = [row for row in range(50) if row not in rows.tolist()]
    assert torch.equal(weight[others], before[others])


def test_state_survives_saving_and_loading() -> None:
    torch.manual_seed(0)
    models = [nn.Linear(3, 2), nn.Linear(3, 2)]
    first, second = (Optimizer(model, Adam()) for model in models)
    models[0](torch.ones(1, 3)).sum().backward()
    first.step(0.1)
    second.load_state_dict({name: value.clone() for name, value in first.state_dict().items()}, first.step_count)
    assert second.step_count == 1
    for name, value in first.state_dict().items():
        assert torch.equal(second.state_dict()[name], value)
