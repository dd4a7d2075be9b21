"""Run whole training loops with several ranks as threads of this process, which saves starting processes."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any, TypeVar

import torch
from torch import Tensor

from tenor.groups import Group
from tenor.groups.base import gather_by_sums
from tenor.training.assemble import Process
from tenor.training.assemble import make_loop as assemble_loop
from tenor.training.loop import Loop
from tenor.training.runs.checkpoint import Checkpoint
from tenor.training.settings import TrainSettings
from tenor.training.strategies import make_strategy
from tenor.training.tasks.base import Task
from tenor.world import World

T = TypeVar("T")
SECONDS_TO_MEET = 30.0  # seconds


class Table:
    """The memory in which the ranks of one group exchange tensors."""

    def __init__(self, size: int) -> None:
        self.parts: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=SECONDS_TO_MEET)
        self.letters: dict[tuple[int, int, int], Queue[Tensor]] = defaultdict(lambda: Queue(1))
        self.lock = threading.Lock()
        self.groups: dict[int, Table] = {}


class Seat:
    """A `Group` for one rank, which exchanges tensors through the table."""

    def __init__(self, rank: int, size: int, table: Table) -> None:
        self.rank, self.size, self.table = rank, size, table

    def start_sum(self, tensor: Tensor) -> Done:
        self.table.parts[self.rank] = tensor.clone()
        self.table.barrier.wait()
        total = sum(self.table.parts[1:], self.table.parts[0].clone())
        self.table.barrier.wait()
        tensor.copy_(total)
        return Done()

    def gather(self, values: Tensor) -> Tensor:
        return gather_by_sums(self, values)

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Done:
        with self.table.lock:
            letters = self.table.letters[self.rank, to, tag]
        letters.put(tensor.clone(), timeout=SECONDS_TO_MEET)
        return Done()

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Done:
        with self.table.lock:
            letters = self.table.letters[source, self.rank, tag]
        return Done(lambda: tensor.copy_(letters.get(timeout=SECONDS_TO_MEET)))

    def split(self, colour: int) -> Seat:
        colours = self.gather(torch.tensor([colour])).tolist()
        ranks = [rank for rank, other in enumerate(colours) if other == colour]
        with self.table.lock:
            table = self.table.groups.setdefault(colour, Table(len(ranks)))
        self.table.barrier.wait()  # from here on, every rank has found its table
        self.table.groups = {}
        self.table.barrier.wait()
        return Seat(ranks.index(self.rank), len(ranks), table)

    def close(self) -> None:
        pass

    def abandon(self, exit_code: int) -> None:
        pass


class Done:
    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.act = act

    def wait(self) -> None:
        self.act()


def together(size: int, act: Callable[[Seat], T]) -> list[T]:
    """Call `act` for each rank in its own thread; return the results by rank, or raise the first error of any rank."""
    table = Table(size)

    def one(rank: int) -> T:
        try:
            return act(Seat(rank, size, table))
        except BaseException:
            table.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(one, rank) for rank in range(size)]
    errors = [error for error in (future.exception() for future in futures) if error]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]


class Memory:
    """A recorder that keeps events, checkpoints and models in memory."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.checkpoints: list[Checkpoint] = []
        self.models: list[dict[str, Tensor]] = []

    def log(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        made = make()
        tensors = {name: tensor.clone() for name, tensor in made.tensors.items()}
        self.checkpoints.append(Checkpoint(made.step, tensors, dict(made.values)))
        return True

    def save_model(self, weights: dict[str, Tensor]) -> None:
        self.models.append({name: weight.clone() for name, weight in weights.items()})


@contextmanager
def one_by_one(make: Callable[[int], Any], epoch: int, start: int, stop: int) -> Iterator[Iterable[Any]]:
    """Yield batches that are made on demand, without a loader thread."""
    yield map(make, range(start, stop))


def make_loop(task: Task, settings: TrainSettings, group: Group, place: Path | None = None) -> Loop:
    """Make the training loop of one rank, recorded in memory; `place` is the path of the rendezvous file, if any."""
    rank, size = group.rank, group.size
    world = World(rank, size, rank, size, rendezvous=f"file://{place}" if place else "")
    process = Process(world, group, torch.device("cpu"), lambda: 0)
    loop = assemble_loop(task, settings, make_strategy(settings, world), process, Memory())
    return replace(loop, feed=one_by_one)


def train_together(task: Task, settings: TrainSettings, size: int, saved: Checkpoint | None = None) -> list[Loop]:
    """Train with several ranks to the end, from a checkpoint if one is given; return the ranks' loops."""

    def act(seat: Seat) -> Loop:
        loop = make_loop(task, settings, seat)
        if saved is not None:
            loop.restore(saved)
        loop.run()
        return loop

    return together(size, act)
