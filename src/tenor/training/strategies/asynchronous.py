"""A parameter server: workers pull weights, compute parts of batches and push gradients; nobody waits for all.

The server's side. It owns weights and optimizer and runs the loop, in which an update that workers pushed stands where
elsewhere a batch stands (Dean et al. 2012, "Large Scale Distributed Deep Networks"). A gradient was computed with
weights that have moved on since: the staleness is bounded in rounds (Ho et al. 2013, "More Effective Distributed ML via
a Stale Synchronous Parallel Parameter Server"), and with a bound of 0 the result is that of one process, to rounding.
The rate of a late gradient may be divided by its staleness (Zhang et al. 2016, "Staleness-aware Async-SGD"), and the
gradient may be corrected for what the weights moved (Zheng et al. 2017, "Asynchronous Stochastic Gradient Descent with
Delay Compensation"). Beats `allreduce` where workers differ in speed or come and go; the server is its bottleneck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tenor.errors import WorkerError
from tenor.models.batch import Batch
from tenor.training.compression import Compression
from tenor.training.groups import Group, choose_backend
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.parameter_server.arrivals import Arrival, Pull, Push, make_arrival
from tenor.training.parameter_server.cargo import Cargo, tensor
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.leases import Grant, Leases
from tenor.training.parameter_server.messages import END, FAILED, HELLO, PUSH, ROWS, VALUES, WORK, Message
from tenor.training.parameter_server.transports import open_channel
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import InStep, SyncStats, divide_gradients
from tenor.world import World

START_SECONDS = 30.0  # for all workers to come; then those who are there begin
LOOK_SECONDS = 0.05  # between looks for leases that are overdue


class Asynchronous(InStep):
    def __init__(self, settings: TrainSettings, world: World, compression: Compression) -> None:
        self.settings, self.world, self.compression = settings, world, compression
        self.size = world.size - 1
        is_random = settings.async_data == "random"
        self.leases = Leases(self.size, float(settings.staleness), is_random, settings.seed)
        self.done: set[int] | None = None  # batches of a checkpoint's epoch
        self.pulls: dict[int, Pull] = {}  # by worker
        self.pushes: dict[Grant, Push] = {}  # that the leases keep
        self.refused: set[int] = set()  # workers who are to hear that their last push was not applied
        self.has_begun = False
        self.signal = 0  # that some worker was sent
        self.num_bytes = self.num_saved = self.num_requeued = 0  # since the last update
        self.waited = 0.0

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        self.optimizer = optimizer
        self.cargo = Cargo(model, optimizer, self.compression)
        device = next(model.parameters()).device
        backend = choose_backend(self.settings.backend, self.world, device)
        self.channel = open_channel(self.world, backend, self.cargo.limit)

    def feed(self, epoch: Callable[[], int]) -> Callable[[object, int, int], Any]:
        """What the loop takes its batches from: updates, in the order in which they become complete."""
        return lambda _, start, stop: closing(self._updates(epoch(), start, stop))

    def _updates(self, epoch: int, start: int, num_batches: int) -> Iterator[Batch]:
        done = self.done if self.done is not None and start else range(start)
        self.done = None
        self.pushes.clear()
        self._await_team()
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
                raise WorkerError(f"no worker has answered for {now - heard:.0f} s", remedy="see what became of them")
            for event in events:
                if (arrival := self._take(event)) is not None:
                    yield arrival  # by the time this goes on, the loop has applied it
                self._hand_out()

    def _await_team(self) -> None:
        """Before the first lease let all workers arrive, or the earliest would be through before the last has come."""
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
            values["refused"] = grant.worker in self.refused
            self.refused.discard(grant.worker)
            self.pulls[grant.worker] = Pull(dense)
            self.num_bytes += self.channel.send(grant.worker, Message(WORK, values, (dense.numpy(),)))

    def _take(self, event: Event) -> Arrival | None:
        """One event; an update where it completes one."""
        worker, message = event.worker, event.message
        self.num_bytes += event.num_bytes
        if message is None:
            self.leases.lost(worker)
        elif message.kind == HELLO:
            self.refused.discard(worker)
            self.leases.join(worker)
        elif message.kind == ROWS:
            self._give_rows(worker, message)
        elif message.kind == PUSH:
            return self._take_push(worker, message)
        elif message.kind == FAILED:
            raise WorkerError(f"worker {worker} failed ({message.values['what']})", remedy=message.values["remedy"])
        return None

    def _give_rows(self, worker: int, message: Message) -> None:
        pull = self.pulls[worker]
        pull.rows = tensor(message.arrays[0])
        pull.values = self.cargo.rows(pull.rows)
        answer = Message(VALUES, {}, tuple(value.numpy() for value in pull.values))
        self.num_bytes += self.channel.send(worker, answer)

    def _take_push(self, worker: int, message: Message) -> Arrival | None:
        self.signal = self.signal or int(message.values["signal"])
        grant = self.leases.grants.get(worker)
        decision = self.leases.pushed(worker, int(message.values["sequence"]), time.monotonic())
        if not decision.is_accepted:
            self.refused.add(worker)
            return None
        assert grant is not None
        self.num_saved += int(message.values["saved"])
        self.pushes[grant] = Push(grant, self.pulls[worker], message.values, message.arrays)
        if not decision.update:
            return None
        complete = [self.pushes[one] for one in decision.update]
        self.pushes = {one: self.pushes[one] for one in self.leases.kept.values()}  # others are done or late
        return make_arrival(complete, decision.staleness)

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        """Add up what the workers computed, in order of their parts."""
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
        """g + λ|g|(w − w'), where w' are the weights that g was computed with: a first-order estimate of what g would
        be with w. It is the paper's adaptive form, g + λ g² (w − w') / |g|, without a memory of past gradients."""
        now = [self.cargo.weights(), *(self.cargo.rows(pull.rows) if pull.rows is not None else [])]
        for gradient, weight, old in zip(gradients, now, [pull.dense, *pull.values], strict=True):
            gradient.addcmul_(gradient.abs(), weight - old, value=self.settings.delay_compensation)

    def apply(self, lr: float) -> None:
        behind = self.arrival.staleness if self.settings.stale_rate else 1
        self.optimizer.step(lr / max(1, behind))

    def state_dict(self) -> dict[str, Tensor]:
        return {"done": torch.tensor(sorted(self.leases.done), dtype=torch.int64)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """What was under way is done again."""
        if "done" in state:
            self.done = set(state["done"].tolist())

    def end(self, **outcome: Any) -> None:
        """Send the workers home."""
        for worker in range(self.size):
            self.channel.send(worker, Message(END, outcome))
        self.channel.close()
