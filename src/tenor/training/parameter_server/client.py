"""The worker side of a parameter server: compute one lease after another until the server ends the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from tenor.errors import Stopped, TenorError, WorkerError
from tenor.training.balancing.slowdown import Pace
from tenor.training.batch import divide
from tenor.training.gradients import backpropagate
from tenor.training.optim.optimizers import Optimizer
from tenor.training.parameter_server.cargo import Cargo
from tenor.training.parameter_server.channels import Line
from tenor.training.parameter_server.claims import MOST_SPANS
from tenor.training.parameter_server.messages import END, FAILED, PUSH, ROWS, Message
from tenor.training.profiling.spans import EXCHANGE, LOAD, OFF, WAIT, Profiler
from tenor.training.tasks.base import Task


class Client:
    """A worker that pulls weights from the server and pushes gradients to it."""

    def __init__(
        self, task: Task, model: nn.Module, optimizer: Optimizer, cargo: Cargo, pace: Pace, profile: Profiler = OFF
    ) -> None:
        self.task, self.model, self.optimizer, self.cargo, self.pace = task, model, optimizer, cargo, pace
        self.profile = profile
        self.device = next(model.parameters()).device

    def run(self, line: Line, signalled: Callable[[], int]) -> dict[str, Any]:
        """Answer the server until it ends the run; return the result of the run."""
        try:
            while (message := self._await(line)).kind != END:
                answer = self._work(line, message, signalled)
                if answer.kind == END:
                    message = answer
                    break
                with self.profile.span(EXCHANGE):
                    line.send(answer)
                self.profile.end_step(message.values["step"])
        except TenorError as error:
            if not isinstance(error, WorkerError):  # the server does not know of this error yet
                line.send(Message(FAILED, {"what": error.what, "remedy": error.remedy}))
            raise
        finally:
            line.close()
        return _result(message.values)

    def _await(self, line: Line) -> Message:
        """The next lease, with which a step begins, or the end of the run."""
        self.profile.begin_step()
        with self.profile.span(WAIT):
            return line.receive()

    def _work(self, line: Line, message: Message, signalled: Callable[[], int]) -> Message:
        """Compute one lease; return the push, or the last message of the server if that arrives first."""
        values = message.values
        with self.profile.span(EXCHANGE):
            self.cargo.compression.settle(values["refused"], values["undecided"])
            self.cargo.take_weights(message.arrays[0])
        epoch, k = values["epoch"], values["batch"]
        part = divide(self.task.order, epoch, k, np.ones(values["parts"]))[values["part"]]
        with self.profile.span(LOAD):
            batch = self.task.load(epoch, k, part)
        if self.cargo.tables:
            rows = [batch.rows_of(name) for name in self.cargo.tables]
            with self.profile.span(EXCHANGE):
                line.send(Message(ROWS, {}, tuple(own.numpy() for own in rows)))
                reply = line.receive()
                if reply.kind == END:
                    return reply
                self.cargo.take_rows(rows, reply.arrays)
        self.model.train()
        self.optimizer.freeze(self.task.frozen(epoch))
        with self.pace.stretch(values["step"], batch.num_padded):
            loss, weight = backpropagate(
                self.model, self.optimizer, batch.to(self.device), self.task.objective, profile=self.profile
            )
        with self.profile.span(EXCHANGE):
            parts = self.cargo.pack_gradients(values["sequence"])
        uncompressed = sum(gradient.nbytes for _, gradient in self.optimizer.gradients())
        counts = {
            "sequence": values["sequence"],
            "loss": loss,
            "weight": weight,
            "samples": len(batch),
            "tokens": batch.num_tokens,
            "padded": batch.num_padded,
            "saved": uncompressed - sum(part.nbytes for part in parts),
            "signal": signalled(),
            **({"spans": self.profile.take()[-MOST_SPANS:]} if self.profile.is_on else {}),
        }
        return Message(PUSH, counts, tuple(part.numpy() for part in parts))


def _result(values: dict[str, Any]) -> dict[str, Any]:
    """The result in the server's last message; an error if the run was stopped or failed."""
    if number := values.get("signal"):
        raise Stopped(int(number), "the parameter server saved a checkpoint; --resume continues from it")
    if reason := values.get("failed"):
        raise WorkerError(f"the parameter server failed ({reason})", remedy="see its message")
    result: dict[str, Any] = values["result"]
    return result
