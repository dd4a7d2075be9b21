"""Plain PyTorch training as a user would write it: padded batches, dense gradients, and DDP with several processes.

Start it with `python -m tenor.bench.peers.plain JOB`, where JOB is a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from tenor.bench.peers.datasets import Fixed, Ragged
from tenor.bench.step_rates import Steps

Loader = DataLoader[Any]


class PlainClassifier(nn.Module):
    """An embedding, an LSTM, pooling over time and a linear layer: the same model as Tenor's."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__()
        self.pooling = job["pooling"]
        self.embedding = nn.Embedding(job["vocab_size"], job["embedding_dim"], padding_idx=0)
        self.lstm = nn.LSTM(job["embedding_dim"], job["hidden"], job["layers"], batch_first=True)
        self.head = nn.Linear(job["hidden"], 1)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))  # (batch, time, hidden)
        if self.pooling == "last":
            pooled = states[:, -1]
        else:
            is_real = torch.arange(states.shape[1]) < lengths[:, None]
            pooled = states.masked_fill(~is_real[:, :, None], -torch.inf).max(dim=1).values
        logits: Tensor = self.head(pooled)
        return logits.squeeze(1)


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Train as one rank and return the rates, and (seconds, validation accuracy) after each epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    model: nn.Module = PlainClassifier(job)
    train, valid = _loaders(job)
    if job["workers"] > 1:
        os.environ["GLOO_SOCKET_IFNAME"] = job["interface"]
        meeting = f"file://{job['meeting']}"
        dist.init_process_group("gloo", init_method=meeting, rank=job["rank"], world_size=job["workers"])
        model = DistributedDataParallel(model)
    optimizer = _optimizer(job, model)
    steps, accuracies = Steps(), []
    for epoch in range(job["epochs"]):
        if isinstance(train.sampler, DistributedSampler):
            train.sampler.set_epoch(epoch)
        steps.begin_epoch()
        _train(model, train, optimizer, steps, job)
        accuracies.append((steps.now(), _accuracy(model, valid)))
    return {**steps.rates(), "accuracies": accuracies}


def _loaders(job: dict[str, Any]) -> tuple[Loader, Loader]:
    kind = Fixed if job["file"] else Ragged
    train, valid = kind(job, "train"), kind(job, "valid")
    sampler: Any = DistributedSampler(train, job["workers"], job["rank"]) if job["workers"] > 1 else None
    size = job["batch_size"] // job["workers"]
    first: Loader = DataLoader(train, size, shuffle=sampler is None, sampler=sampler, collate_fn=kind.collate)
    return first, DataLoader(valid, 256, collate_fn=kind.collate)


def _optimizer(job: dict[str, Any], model: nn.Module) -> torch.optim.Optimizer:
    if job["optimizer"] == "sgd":
        return torch.optim.SGD(model.parameters(), lr=job["lr"], momentum=job["momentum"])
    return torch.optim.Adam(model.parameters(), lr=job["lr"])


def _train(
    model: nn.Module, loader: Loader, optimizer: torch.optim.Optimizer, steps: Steps, job: dict[str, Any]
) -> None:
    criterion = nn.BCEWithLogitsLoss()
    model.train()
    for tokens, lengths, labels in loader:
        if job["max_steps"] and steps.count >= job["max_steps"]:
            return
        optimizer.zero_grad()
        criterion(model(tokens, lengths), labels).backward()
        if job["clip"]:
            nn.utils.clip_grad_norm_(model.parameters(), job["clip"])
        optimizer.step()
        steps.add(len(labels), int(lengths.sum()))


@torch.no_grad()
def _accuracy(model: nn.Module, loader: Loader) -> float:
    model.eval()
    right = [((model(tokens, lengths) > 0) == (labels > 0.5)).sum() for tokens, lengths, labels in loader]
    return int(sum(right)) / len(loader.dataset)  # type: ignore[arg-type]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
    os._exit(0)  # threads of gloo may still wait for processes that have already exited
