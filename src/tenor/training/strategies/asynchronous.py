"""A parameter server: workers pull weights, compute parts of batches and push gradients, at their own pace.

This file holds the server, which owns the weights and the optimizer and runs the loop. In the loop, a complete update
that the workers pushed takes the place of a batch (Dean et al. 2012, "Large Scale Distributed Deep Networks"). By the
time a gradient arrives, the weights that it was computed with have changed. This staleness is bounded in rounds (Ho et
al. 2013, "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server"); with a bound of 0 the
result is that of one process, to rounding. The learning rate of a stale gradient can be divided by its staleness (Zhang
et al. 2016, "Staleness-aware Async-SGD"), and the gradient can be corrected for the movement of the weights (Zheng et
al. 2017, "Asynchronous Stochastic Gradient Descent with Delay Compensation"). It beats `allreduce` where workers differ
in speed or come and go; the server is the bottleneck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tenor.errors import Stopped, WorkerError
from tenor.groups import Group, choose_backend
from tenor.groups.compression import Compression, make_compression
from tenor.training.balancing.slowdown import Pace
from tenor.training.batch import TrainBatch
from tenor.training.gradients import divide_gradients
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.parameter_server.arrivals import Arrival, Pull, Push, make_arrival
from tenor.training.parameter_server.cargo import Cargo
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.claims import read_counts, read_rows, read_text
from tenor.training.parameter_server.client import Client
from tenor.training.parameter_server.leases import Grant, Leases
from tenor.training.parameter_server.messages import END, FAILED, HELLO, PUSH, ROWS, VALUES, WORK, Message, refused
from tenor.training.parameter_server.transports import open_channel, open_line
from tenor.training.profiling.spans import EXCHANGE, WAIT
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.single import Single
from tenor.training.tasks.base import Task
from tenor.training.tasks.losses import Objective
from tenor.world import World

START_SECONDS = 30.0  # the server waits this long for all workers, then begins with those that have joined
LOOK_SECONDS = 0.05  # between looks for overdue leases


class Asynchronous(Strategy):
    resumes_scattered = True
    feeding = WAIT  # for the pushes of the workers

    def __init__(self, settings: TrainSettings, world: World, compression: Compression) -> None:
        self.settings, self.world, self.compression = settings, world, compression
        self.is_client = not world.is_first
        self.size = world.size - 1
        is_random = settings.async_data == "random"
        self.leases = Leases(self.size, float(settings.staleness), is_random, settings.seed)
        self.done: set[int] | None = None  # batches that a checkpoint lists as applied in its epoch
        self.pulls: dict[int, Pull] = {}  # by worker
        self.pushes: dict[Grant, Push] = {}  # accepted, of batches that are not complete yet
        self.refused: dict[int, list[int]] = {}  # by worker: refused pushes that the worker does not know of yet
        self.has_begun = False
        self.num_bytes = self.num_saved = self.num_requeued = 0  # since the last update
        self.waited = 0.0

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        if world.size == 1:  # a process alone is its own server, and never stale
            return Single()
        return cls(settings, world, make_compression(settings.compress, settings.top_k, settings.batch_size))

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        super().setup(model, optimizer, group)
        self.cargo = Cargo(model, optimizer, self.compression)
        self.channel = open_channel(self.world, self._backend(model), self.cargo.limit)

    def _backend(self, model: nn.Module) -> str:
        return choose_backend(self.settings.backend, self.world, next(model.parameters()).device)

    def run_client(self, task: Task, model: nn.Module, pace: Pace, signalled: Callable[[], int]) -> dict[str, Any]:
        optimizer = Optimizer(model, SGD())  # collects gradients; it never steps
        cargo = Cargo(model, optimizer, self.compression)
        line = open_line(self.world, self._backend(model), cargo.limit, self.settings.timeout)
        return Client(task, model, optimizer, cargo, pace, self.profile).run(line, signalled)

    def feed(
        self, load: Callable[[int], TrainBatch], epoch: int, start: int, stop: int
    ) -> AbstractContextManager[Iterable[TrainBatch]]:
        """Complete updates, in the order in which they become complete. The server loads no batch itself."""
        return closing(self._updates(epoch, start, stop))

    def _updates(self, epoch: int, start: int, num_batches: int) -> Generator[TrainBatch]:
        done = self.done if self.done is not None and start else range(start)
        self.done = None
        self.pushes.clear()
        self._await_workers()
        self.leases.begin(epoch, num_batches, done)
        heard = time.monotonic()
        while not self.leases.is_over:
            self._hand_out()
            before = time.monotonic()
            events = self.channel.poll(LOOK_SECONDS)
            now = time.monotonic()
            self.waited += now - before
            heard = now if events else heard
            if now - heard > self.settings.timeout:
                what = f"no worker has answered the parameter server for {now - heard:.0f} s"
                raise WorkerError(what, remedy="see the messages of the workers, or raise --timeout")
            for event in events:
                if (arrival := self._take(event)) is not None:
                    yield arrival  # when this generator resumes, the loop has applied it
                self._hand_out()

    def _await_workers(self) -> None:
        """Wait for all workers before the first lease, or the first ones could finish before the last one joins."""
        until = time.monotonic() + START_SECONDS
        while not self.has_begun and len(self.leases.idle) < self.size and time.monotonic() < until:
            for event in self.channel.poll(LOOK_SECONDS):
                self._take(event)
        self.has_begun = True

    def _hand_out(self) -> None:
        grants = self.leases.hand_out(time.monotonic())
        if not grants:
            return
        dense = self.cargo.weights()
        for grant in grants:
            values = {"sequence": grant.sequence, "step": grant.version + 1, **vars(grant.lease)}
            values["refused"] = self.refused.pop(grant.worker, [])
            values["undecided"] = self.leases.undecided(grant.worker)
            self.pulls[grant.worker] = Pull(dense)
            self.num_bytes += self.channel.send(grant.worker, Message(WORK, values, (dense.numpy(),)))

    def _take(self, event: Event) -> Arrival | None:
        """Handle one event; return an update if the event completes one. A worker that sends nonsense is dropped."""
        worker, message = event.worker, event.message
        self.num_bytes += event.num_bytes
        if message is None:
            self._lose(worker)
        elif message.kind == HELLO:
            self._lose(worker)
            self.leases.join(worker)
        elif message.kind == FAILED:
            what, remedy = read_text(message.values, "what"), read_text(message.values, "remedy")
            raise WorkerError(f"worker {worker} failed ({what})", remedy=remedy)
        elif worker in self.pulls:
            try:
                return self._answer(worker, message)
            except WorkerError as error:
                self.channel.drop(worker, error.what)
                self._lose(worker)
        return None

    def _lose(self, worker: int) -> None:
        self.leases.lost(worker)
        self.pulls.pop(worker, None)
        self.refused.pop(worker, None)

    def _answer(self, worker: int, message: Message) -> Arrival | None:
        if message.kind == ROWS:
            self._give_rows(worker, message)
        elif message.kind == PUSH:
            return self._take_push(worker, message)
        return None

    def _give_rows(self, worker: int, message: Message) -> None:
        pull = self.pulls[worker]
        pull.rows = read_rows(message, self.cargo.num_rows)
        pull.values = self.cargo.rows(pull.rows)
        answer = Message(VALUES, {}, tuple(value.numpy() for value in pull.values))
        self.num_bytes += self.channel.send(worker, answer)

    def _take_push(self, worker: int, message: Message) -> Arrival | None:
        counts, pull = read_counts(message.values), self.pulls[worker]
        grant = self.leases.grants.get(worker)
        if not self.cargo.fits(message.arrays, pull.rows) or not self._fits_its_batch(grant, pull):
            raise refused("its gradients do not fit this model")
        self.signal = self.signal or counts.signal
        verdict = self.leases.pushed(worker, counts.sequence, time.monotonic())
        for name, sequence in verdict.refused:
            self.refused.setdefault(name, []).append(sequence)
        if not verdict.is_accepted:
            return None
        assert grant is not None
        self.num_saved += counts.saved
        self.profile.add(worker, counts.spans)
        self.pushes[grant] = Push(grant, pull, counts, message.arrays)
        if not verdict.update:
            return None
        complete = [self.pushes[one] for one in verdict.update]
        self.pushes = {one: self.pushes[one] for one in self.leases.kept.values()}  # others are done or late
        return make_arrival(complete, verdict.staleness)

    def _fits_its_batch(self, grant: Grant | None, pull: Pull) -> bool:
        """All parts of a batch must name the same rows, those that the whole batch touches, to be added up."""
        others = [one.pull for one in self.pushes.values() if grant and one.grant.lease.batch == grant.lease.batch]
        pairs = [pair for other in others for pair in zip(other.rows or [], pull.rows or [], strict=True)]
        return all(torch.equal(rows, own) for rows, own in pairs)

    def compute(self, batch: TrainBatch, objective: Objective) -> tuple[float, float]:
        """Add up the gradients of the workers, in the order of their parts."""
        with self.profile.span(EXCHANGE):
            return self._add_up(batch)

    def _add_up(self, batch: TrainBatch) -> tuple[float, float]:
        assert isinstance(batch, Arrival)
        self.arrival, rows = batch, batch.pushes[0].pull.rows
        total: list[Tensor] = []
        for push in batch.pushes:
            found = self.cargo.unpack_gradients(push.arrays, rows)
            if self.settings.delay_compensation and batch.staleness:
                self._compensate(found, push.pull)
            total = [sum_.add_(one) for sum_, one in zip(total, found, strict=True)] if total else found
        self.cargo.place_gradients(total, rows)
        return batch.total("loss"), batch.total("weight")

    def exchange(self, tallies: Tensor) -> SyncStats:
        arrival = self.arrival
        divide_gradients(self.optimizer, float(tallies[1]))
        leases = tuple(
            (p.grant.worker, p.grant.sequence, p.grant.lease.batch, p.grant.lease.part) for p in arrival.pushes
        )
        requeued, before = sum(self.leases.requeued.values()), self.num_requeued
        sent = SyncStats(self.num_bytes, self.waited, self.num_saved)
        stats = replace(sent, staleness=arrival.staleness, requeued=requeued - before, leases=leases)
        self.num_bytes, self.num_saved, self.waited, self.num_requeued = 0, 0, 0.0, requeued
        return stats

    def _compensate(self, gradients: list[Tensor], pull: Pull) -> None:
        """Correct a gradient g that was computed with old weights w' to g + λ|g|(w − w').

        This is a first-order estimate of the gradient with the present weights w: the paper's adaptive form,
        g + λ g² (w − w') / |g|, without a memory of past gradients.
        """
        now = [self.cargo.weights(), *(self.cargo.rows(pull.rows) if pull.rows is not None else [])]
        for gradient, weight, old in zip(gradients, now, [pull.dense, *pull.values], strict=True):
            gradient.addcmul_(gradient.abs(), weight - old, value=self.settings.delay_compensation)

    def apply(self, lr: float) -> None:
        behind = self.arrival.staleness if self.settings.stale_rate else 1
        self.optimizer.step(lr / max(1, behind))

    def state_dict(self) -> dict[str, Tensor]:
        return {"done": torch.tensor(sorted(self.leases.done), dtype=torch.int64)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Leases that were not applied are computed again."""
        if "done" in state:
            if state["done"].dim() != 1 or state["done"].dtype != torch.int64:
                raise ValueError("the list of applied batches is not a vector of whole numbers")
            self.done = set(state["done"].tolist())

    def end(self, result: dict[str, Any] | None = None, error: BaseException | None = None) -> None:
        """Tell the workers how the run ended, so that they end the same way."""
        if isinstance(error, Stopped):
            outcome: dict[str, Any] = {"signal": error.signal}
        elif error is not None:
            outcome = {"failed": str(error) or type(error).__name__}
        else:
            outcome = {"result": result}
        for worker in range(self.size):
            self.channel.send(worker, Message(END, outcome))
        self.channel.close()
