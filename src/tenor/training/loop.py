"""The loop: one step after another, readable from top to bottom. A strategy plugs in; it never owns the loop."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from tenor.errors import Stopped, TrainingError
from tenor.evaluation.metrics import Metrics
from tenor.models.batch import Batch
from tenor.training.balance import Balance
from tenor.training.checkpoint import Checkpoint, weights_sha256
from tenor.training.cursor import Cursor
from tenor.training.grid import Grid, complete_weights
from tenor.training.groups import Group
from tenor.training.loader import Ahead
from tenor.training.optimizers import Optimizer
from tenor.training.recorder import Recorder
from tenor.training.schedule import Schedule
from tenor.training.settings import TrainSettings
from tenor.training.slowdown import Pace
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.tallies import Tallies
from tenor.training.task import Task

# From a maker of batches and the numbers of the first and last, to the epoch's batches as they become ready
Feed = Callable[[Callable[[int], Batch], int, int], AbstractContextManager[Iterable[Batch]]]

MAX_SKIPPED = 10  # steps in a row without a finite gradient before training gives up


@dataclass
class Loop:
    """The parts of a training run, put together by the worker."""

    task: Task
    settings: TrainSettings
    group: Group
    grid: Grid
    strategy: Strategy
    model: nn.Module
    optimizer: Optimizer
    schedule: Schedule
    balance: Balance
    pace: Pace
    recorder: Recorder
    signalled: Callable[[], int]  # the number of a signal that came, or 0
    device: torch.device
    feed: Feed = Ahead
    cursor: Cursor = field(default_factory=Cursor)
    wait_seconds: float = 0.0  # of the last step
    pending: Tensor | None = None  # tallies since all workers last agreed on them
    stats: SyncStats = field(default_factory=SyncStats)  # likewise
    agreed_step: int = 0

    def run(self) -> None:
        """Train to the end, or to a signal: then raise `Stopped` after a checkpoint."""
        cursor = self.cursor
        began = time.perf_counter() - cursor.seconds
        while not cursor.is_finished:
            cursor.is_finished = self._is_over(None)  # also where a run goes on of which nothing is left to do
            if cursor.is_finished and cursor.batch == 0:  # nor anything of an epoch to measure
                break
            last = cursor.batch if cursor.is_finished else self.task.order.num_batches
            with self.feed(self._load, cursor.batch, last) as batches:
                before = time.perf_counter()
                for batch in batches:
                    tallies = self._step(self._as_decided(batch), before)
                    before = time.perf_counter()
                    cursor.seconds = before - began
                    if tallies and tallies.signal:
                        is_saved = self._save()
                        saved, lost = (
                            "saved a checkpoint; --resume goes on from it",
                            "--resume goes on from the one before",
                        )
                        raise Stopped(tallies.signal, saved if is_saved else f"no checkpoint could be saved; {lost}")
                    if self._is_over(tallies):
                        cursor.is_finished = True
                        break
                    if tallies and self._is_save_due():
                        self._save()
            self._end_epoch()
            cursor.seconds = time.perf_counter() - began
            self._save()

    def _load(self, k: int) -> Batch:
        decision, shares = self.balance.shares(self.cursor.epoch, k)
        batch = self.task.load(self.cursor.epoch, k, self.grid.column.rank, shares)
        return replace(batch, decision=decision)

    def _as_decided(self, batch: Batch) -> Batch:
        """A batch that was cut before the last decision is cut again, so that all ranks cut it alike."""
        return batch if batch.decision == self.balance.decision.number else self._load(self.cursor.batch)

    def _step(self, batch: Batch, before: float) -> Tallies | None:
        """One global batch: compute, exchange, check, apply, settle. `before` is when the step before ended. Gives
        the sums since workers last agreed when they do again; in between None."""
        began = time.perf_counter()
        self.model.train()
        with self.pace.stretch(self.cursor.step + 1, batch.num_padded):
            loss, weight = self.strategy.compute(batch.to(self.device), self.task.objective)
        own = self._tally(batch, loss, weight)
        compute_seconds = time.perf_counter() - began - self.strategy.waited_inside
        sizes = (len(batch), batch.num_padded) if self.grid.counts else (0, 0)
        measures = (compute_seconds, self.wait_seconds, *sizes)
        vector = own.pack(self.group.rank, self.group.size, *measures)
        stats = self.strategy.exchange(vector)
        lr = self.schedule(self.cursor.step)
        is_sound = self._clip() and math.isfinite(float(vector[0]))
        if is_sound:
            self.strategy.apply(lr)
        else:
            vector[0] = math.nan  # so that no loss is told of a step that some worker skipped
        self.pending = vector if self.pending is None else self.pending + vector
        stats = stats + self.strategy.settle(self.pending)
        self.stats = self.stats + stats
        self.wait_seconds = stats.wait_seconds
        self.cursor.move(is_sound, time.perf_counter() - before)
        self._give_up_on_nonsense()
        return self._agree(lr, before) if self.strategy.is_settled else None

    def _agree(self, lr: float, before: float) -> Tallies:
        """Take in what all workers know now."""
        assert self.pending is not None
        tallies, (compute_seconds, wait_seconds, shares, padded) = Tallies.unpack(self.pending, self.group.size)
        stats, self.pending, self.stats = self.stats, None, SyncStats()
        self.balance.note(self.cursor.epoch, self.cursor.batch - 1, padded, compute_seconds)
        self.cursor.count(tallies, stats)
        self.recorder.log(
            {
                "event": "step",
                "epoch": self.cursor.epoch + 1,
                "step": self.cursor.step,
                "loss": tallies.mean_loss if math.isfinite(tallies.mean_loss) else None,
                "lr": lr,
                "samples": round(tallies.samples),
                "tokens": round(tallies.tokens),
                "seconds": self.cursor.seconds + time.perf_counter() - before,
                "compute_seconds": compute_seconds,
                "wait_seconds": wait_seconds,
                "bytes_sent": stats.bytes_sent,
                "bytes_saved": stats.bytes_saved,
                "shares": [round(rows) for rows in shares],
                "staleness": stats.staleness,
                "requeued": stats.requeued,
                **({"leases": stats.leases} if stats.leases else {}),
            }
        )
        return tallies

    def _tally(self, batch: Batch, loss: float, weight: float) -> Tallies:
        came = self.signalled()
        limit = self.settings.max_seconds
        return Tallies(
            loss=loss,
            weight=weight,
            samples=len(batch) if self.grid.counts else 0,
            tokens=batch.num_tokens if self.grid.counts else 0,
            interrupted=float(came == signal.SIGINT),
            terminated=float(came == signal.SIGTERM),
            late=float(bool(limit) and self.cursor.seconds >= limit),
        )

    def _is_over(self, tallies: Tallies | None) -> bool:
        limit = self.settings.max_steps
        return bool(tallies and tallies.late) or bool(limit and self.cursor.step >= limit)

    def _is_save_due(self) -> bool:
        """Checkpoints are made where workers agree: at the first such step from every multiple of the setting on."""
        every, before = self.settings.checkpoint_steps, self.agreed_step
        self.agreed_step = self.cursor.step
        return self.cursor.step // every > before // every

    def _save(self) -> bool:
        """Whether it is saved, as far as this rank can tell."""
        state = self.strategy.state_dict()  # on every rank: it may gather
        return self.grid.column.rank != 0 or self.recorder.save(lambda: self.checkpoint(state), self.grid.row)

    def _clip(self) -> bool:
        """Scale the agreed gradient to the largest allowed norm; False where it is not finite."""
        gradients = [gradient for _, gradient in self.optimizer.gradients()]
        own = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
        norm = self.grid.whole_norm(float(own))
        limit = self.settings.clip
        if limit and norm > limit:
            for gradient in gradients:
                gradient.mul_(limit / norm)
        return math.isfinite(norm)

    def _give_up_on_nonsense(self) -> None:
        if self.cursor.skipped_in_a_row >= MAX_SKIPPED:
            raise TrainingError(
                f"loss or gradient was not finite in {MAX_SKIPPED} steps in a row, the last at step {self.cursor.step}",
                remedy="lower --lr, or set --clip",
            )

    def _end_epoch(self) -> None:
        """Validate, keep the best weights, and decide whether to go on; every rank decides the same."""
        cursor = self.cursor
        if not self.strategy.is_settled:
            assert self.pending is not None
            stats = self.strategy.settle(self.pending, now=True)
            self.stats, self.wait_seconds = self.stats + stats, self.wait_seconds + stats.wait_seconds
            self._agree(self.schedule(cursor.step - 1), time.perf_counter())
        for table in self.optimizer.tables.values():
            table.release()
        complete_weights(self.optimizer, self.grid.row)
        valid = self.task.measure(self.model, "valid", self.group)
        described = valid.as_dict() if valid else {}
        score = _score(valid, cursor.epoch)
        if score >= cursor.best or self.settings.keep == "last":
            cursor.best, cursor.best_epoch, cursor.best_valid = score, cursor.epoch + 1, described
            self.recorder.save_model(self.optimizer.weights)
        train_loss = cursor.loss_sum / cursor.weight_sum if cursor.weight_sum else None
        event = {"event": "epoch", "epoch": cursor.epoch + 1, "step": cursor.step, "seconds": cursor.seconds}
        self.recorder.log({**event, "train_loss": train_loss, "valid": described, **cursor.rates})
        cursor.end_epoch()
        patience = self.settings.patience
        is_stale = bool(patience) and cursor.epoch - cursor.best_epoch >= patience
        cursor.is_finished |= is_stale or cursor.epoch >= self.settings.epochs

    def checkpoint(self, state: Mapping[str, Tensor]) -> Checkpoint:
        tensors = {f"weights/{name}": weight for name, weight in self.optimizer.own.items()}
        tensors |= {f"state/{name}": value for name, value in self.optimizer.state_dict().items()}
        tensors |= {f"strategy/{name}": value for name, value in state.items()}
        values = {**vars(self.cursor), "applied": self.optimizer.step_count, "balance": self.balance.state()}
        return Checkpoint(self.cursor.step, tensors, values)

    def restore(self, saved: Checkpoint) -> None:
        values = dict(saved.values)
        applied = int(values.pop("applied"))
        self.balance.restore(values.pop("balance", {}))
        self.cursor = Cursor(**values)
        for name, weight in self.optimizer.weights.items():
            weight.copy_(saved.tensors[f"weights/{name}"])
        self.agreed_step = self.cursor.step
        self.optimizer.load_state_dict(_under("state/", saved.tensors), applied)
        self.strategy.load_state_dict(_under("strategy/", saved.tensors))

    def summary(self) -> dict[str, Any]:
        cursor = self.cursor
        return {
            "steps": cursor.step,
            "epochs": cursor.epoch,
            "seconds": cursor.seconds,
            **cursor.rates,
            "bytes_sent": cursor.bytes_sent,
            "bytes_saved": cursor.bytes_saved,
            "staleness_mean": cursor.staleness_sum / max(1, cursor.step),
            "staleness_max": cursor.staleness_max,
            "requeued": cursor.requeued,
            "skipped_steps": cursor.skipped,
            "kept_epoch": cursor.best_epoch,
            "valid": cursor.best_valid,
            "weights_sha256": weights_sha256(self.optimizer.weights),
        }


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _score(valid: Metrics | None, epoch: int) -> float:
    """What makes weights better: for two classes AUC, which wavers less than accuracy on few rows; for more, where AUC
    can be perfect long before the labels are, accuracy; without validation, being later."""
    if valid is None:
        return float(epoch)
    return valid.accuracy if valid.auc is None or len(valid.confusion) > 2 else valid.auc
