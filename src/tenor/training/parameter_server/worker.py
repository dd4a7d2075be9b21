"""A computing worker of a parameter server: lease after lease until the server says that it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tenor.environment import usable_cores
from tenor.errors import Stopped, TenorError, WorkerError
from tenor.training.compression import make_compression
from tenor.training.job import Job
from tenor.training.optimizers import SGD, Optimizer
from tenor.training.parameter_server.cargo import Cargo
from tenor.training.parameter_server.channels import Line
from tenor.training.parameter_server.messages import END, FAILED, PUSH, ROWS, Message
from tenor.training.parameter_server.transports import open_line
from tenor.training.precision import set_precision
from tenor.training.roles import num_computing
from tenor.training.slowdown import Pace, clock_of, parse_slowdown
from tenor.training.strategies import make_strategy
from tenor.training.strategies.base import backpropagate
from tenor.training.task import Task
from tenor.training.tasks import make_task
from tenor.world import World


def work(world: World, job: Job, device: torch.device, backend: str, signalled: Callable[[], int]) -> dict[str, Any]:
    """Compute for the server of this world until it ends; the result that it came to."""
    settings = job.settings
    make_strategy(settings, world)  # refuses what the server refuses
    number = world.rank - 1
    slowdown = parse_slowdown(settings.slowdown, num_computing(settings, world.size))
    pace = Pace(slowdown, number, shares_cores=world.local_size > usable_cores(), clock=clock_of(device.type))
    task = make_task(Path(job.data), settings)
    try:
        model = task.make_model().to(device)
        set_precision(model, settings.precision, device)
        optimizer = Optimizer(model, SGD())  # for its gradients alone: it never steps
        cargo = Cargo(model, optimizer, make_compression(settings.compress, settings.top_k, settings.batch_size))
        line = open_line(world, backend, cargo.limit, settings.timeout)
        return Worker(number, task, model, optimizer, cargo, pace).run(line, signalled)
    finally:
        task.close()


class Worker:
    def __init__(
        self, number: int, task: Task, model: nn.Module, optimizer: Optimizer, cargo: Cargo, pace: Pace
    ) -> None:
        self.number, self.task, self.model, self.optimizer, self.cargo = number, task, model, optimizer, cargo
        self.pace = pace
        self.device = next(model.parameters()).device

    def run(self, line: Line, signalled: Callable[[], int]) -> dict[str, Any]:
        """The result that the server came to."""
        try:
            while (message := line.receive()).kind != END:
                answer = self._work(line, message, signalled)
                if answer.kind == END:
                    message = answer
                    break
                line.send(answer)
        except TenorError as error:
            if not isinstance(error, WorkerError):  # the server cannot know
                line.send(Message(FAILED, {"what": error.what, "remedy": error.remedy}))
            raise
        finally:
            line.close()
        return _result(message.values)

    def _work(self, line: Line, message: Message, signalled: Callable[[], int]) -> Message:
        """What to answer the server with, or its last message where that comes in between."""
        values = message.values
        began = time.perf_counter()
        if values["refused"]:
            self.cargo.compression.take_back()
        self.cargo.take_weights(message.arrays[0])
        shares = np.ones(values["parts"])
        batch = self.task.load(values["epoch"], values["batch"], values["part"], shares)
        if self.cargo.tables:
            assert batch.rows is not None
            line.send(Message(ROWS, {}, (batch.rows.numpy(),)))
            told = line.receive()
            if told.kind == END:
                return told
            self.cargo.take_rows(batch.rows, told.arrays)
        self.model.train()
        with self.pace.stretch(values["step"], batch.num_padded):
            loss, weight = backpropagate(self.model, self.optimizer, batch.to(self.device), self.task.objective)
        parts = self.cargo.pack_gradients()
        plain = sum(gradient.nbytes for _, gradient in self.optimizer.gradients())
        counts = {
            "sequence": values["sequence"],
            "loss": loss,
            "weight": weight,
            "samples": len(batch),
            "tokens": batch.num_tokens,
            "padded": batch.num_padded,
            "seconds": time.perf_counter() - began,
            "saved": plain - sum(part.nbytes for part in parts),
            "signal": signalled(),
        }
        return Message(PUSH, counts, tuple(part.numpy() for part in parts))


def _result(values: dict[str, Any]) -> dict[str, Any]:
    if number := values.get("signal"):
        raise Stopped(int(number), "the parameter server saved a checkpoint; --resume goes on from it")
    if failed := values.get("failed"):
        raise WorkerError(f"the parameter server failed ({failed})", remedy="see its message")
    result: dict[str, Any] = values["result"]
    return result
