"""The training loop, readable from top to bottom. A strategy plugs in; it never owns the loop."""

from __future__ import annotations

import functools
import math
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from tenor.errors import Stopped, TrainingError
from tenor.evaluation.metrics import Metrics
from tenor.groups import Group
from tenor.models.weights import copy_saved, weights_sha256
from tenor.training.balancing.shares import SharePlan
from tenor.training.balancing.slowdown import Pace
from tenor.training.batch import TrainBatch, divide
from tenor.training.optim.optimizers import Optimizer
from tenor.training.optim.schedule import Schedule
from tenor.training.profiling.spans import EXCHANGE, READ_AHEAD, SAVE, UPDATE, VALIDATE
from tenor.training.runs.checkpoint import Checkpoint
from tenor.training.runs.cursor import Cursor
from tenor.training.runs.recorder import Recorder
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.grid import Grid, complete_weights
from tenor.training.tallies import Tallies
from tenor.training.tasks.base import Task

# (function that loads a batch, epoch, first batch, batch after the last) → the batches as they become ready
Feed = Callable[[Callable[[int], TrainBatch], int, int, int], AbstractContextManager[Iterable[TrainBatch]]]

MAX_SKIPPED = 10  # consecutive steps without a finite loss and gradient before training gives up


@dataclass(kw_only=True)
class Loop:
    """The parts of a training run, which `assemble.make_loop` puts together."""

    task: Task
    settings: TrainSettings
    group: Group
    strategy: Strategy
    model: nn.Module
    optimizer: Optimizer
    schedule: Schedule
    balance: SharePlan
    pace: Pace
    recorder: Recorder
    signalled: Callable[[], int]  # the number of a signal that this or another process received, or 0
    device: torch.device
    feed: Feed
    cursor: Cursor = field(default_factory=Cursor)
    wait_seconds: float = 0.0  # in the last step
    pending: Tensor | None = None  # this worker's tallies since the workers last settled
    stats: SyncStats = field(default_factory=SyncStats)  # since the workers last settled
    save_checked_step: int = 0  # when `_is_save_due` was last asked
    norm: float = 0.0  # of the last step's gradient, before clipping
    load_seconds: float = 0.0  # processor time of this worker's loader since the workers last settled
    touched: Counter[str] = field(default_factory=Counter)  # by table: rows touched since the workers last settled

    @functools.cached_property
    def time_limit(self) -> float:
        """Seconds in which the loop has to end, which are above 0 even if nothing is left; 0 for no limit."""
        limit = self.settings.max_seconds
        return max(limit - self.task.seconds_before, 1e-9) if limit else 0.0

    @property
    def grid(self) -> Grid:
        return self.strategy.grid

    def run(self) -> None:
        """Train to the end. On a signal, save a checkpoint and raise `Stopped`."""
        cursor, profile = self.cursor, self.strategy.profile
        began = time.perf_counter() - cursor.seconds
        while not cursor.is_finished:
            cursor.is_finished = self._is_over(None)  # a resumed run may have no steps left
            if cursor.is_finished and cursor.batch == 0:  # and no part of an epoch to measure
                break
            self.optimizer.freeze(self.task.frozen(cursor.epoch))
            last = cursor.batch if cursor.is_finished else self.task.order.num_batches
            with self.feed(self._load, cursor.epoch, cursor.batch, last) as batches:
                before = time.perf_counter()
                for batch in profile.waiting_for(self.strategy.feeding, batches):
                    tallies = self._step(self._as_decided(batch), before)
                    profile.end_step(cursor.step)
                    before = time.perf_counter()
                    cursor.seconds = before - began
                    if tallies and tallies.signal:
                        self._stop(tallies.signal)
                    if self._is_over(tallies):
                        cursor.is_finished = True
                        break
                    if tallies and self._is_save_due():
                        self._save()
            self._end_epoch()
            cursor.seconds = time.perf_counter() - began
            self._save()

    def _stop(self, number: int) -> NoReturn:
        if self._save():
            raise Stopped(number, "saved a checkpoint; --resume continues from it")
        raise Stopped(number, f"no checkpoint could be saved; {self.recorder.resume_point()}")

    def _load(self, k: int) -> TrainBatch:
        decision, shares = self.balance.shares(self.cursor.epoch, k)
        own = divide(self.task.order, self.cursor.epoch, k, shares)[self.grid.column.rank]
        began = time.thread_time()
        with self.strategy.profile.span(READ_AHEAD):
            batch = self.task.load(self.cursor.epoch, k, own)
        return replace(batch, decision=decision, load_seconds=time.thread_time() - began)

    def _as_decided(self, batch: TrainBatch) -> TrainBatch:
        """Load a batch again if it was divided before the last decision: all ranks must divide it in the same way."""
        return batch if batch.decision == self.balance.decision.number else self._load(self.cursor.batch)

    def _step(self, batch: TrainBatch, before: float) -> Tallies | None:
        """One global batch: compute, exchange, check, apply, settle.

        Args:
            batch: This worker's samples.
            before: When the previous step ended.

        Returns:
            The sums since the workers last settled, if they settle after this step; otherwise None.
        """
        began, profile = time.perf_counter(), self.strategy.profile
        self.model.train()
        with self.pace.stretch(self.cursor.step + 1, batch.num_padded):
            loss, weight = self.strategy.compute(batch.to(self.device), self.task.objective)
        own = self._tally(batch, loss, weight)
        compute_seconds = time.perf_counter() - began - self.strategy.waited_inside
        sizes = (len(batch), batch.num_padded) if self.grid.is_counted else (0, 0)
        measures = (compute_seconds, self.wait_seconds, *sizes, *self._own_square(weight))
        vector = own.pack(self.group.rank, self.group.size, *measures)
        with profile.span(EXCHANGE):
            stats = self.strategy.exchange(vector)
        lr = self._rate(self.cursor.step)
        with profile.span(UPDATE):
            self.norm = self.grid.whole_norm(self._own_norm())
            self._clip()
            is_sound = math.isfinite(self.norm) and math.isfinite(float(vector[0]))
            if is_sound:
                self.strategy.apply(lr)
            else:
                vector[0] = math.nan  # no loss is reported for a step that some worker skipped
        self.pending = vector if self.pending is None else self.pending + vector
        with profile.span(EXCHANGE):
            stats = stats + self.strategy.settle(self.pending)
        self.stats = self.stats + stats
        self.wait_seconds = stats.wait_seconds
        self.cursor.move(is_sound, time.perf_counter() - before)
        self._give_up_if_never_finite()
        self.load_seconds += batch.load_seconds
        self.touched.update({name: len(rows) for name, rows in batch.rows.items()})
        return self._record_settled(lr, before) if self.strategy.is_settled else None

    def _record_settled(self, lr: float, before: float) -> Tallies:
        """Count and log the sums that all workers now share."""
        assert self.pending is not None
        tallies, measures = Tallies.unpack(self.pending, self.group.size)
        compute_seconds, wait_seconds, shares, padded, *squares = measures
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
                "padded_tokens": [round(tokens) for tokens in padded],
                "rows": dict(self.touched),
                "load_seconds": self.load_seconds,
                **({"gradient_norm": self.norm, "worker_gradient_norm": _rms(squares[0], shares)} if squares else {}),
                "staleness": stats.staleness,
                "requeued": stats.requeued,
                **({"leases": stats.leases} if stats.leases else {}),
            }
        )
        self.load_seconds, self.touched = 0.0, Counter()
        return tallies

    def _tally(self, batch: TrainBatch, loss: float, weight: float) -> Tallies:
        received = self.signalled()
        return Tallies(
            loss=loss,
            weight=weight,
            samples=len(batch) if self.grid.is_counted else 0,
            tokens=batch.num_tokens if self.grid.is_counted else 0,
            interrupted=float(received == signal.SIGINT),
            terminated=float(received == signal.SIGTERM),
            time_used=self.cursor.seconds / self.time_limit if self.time_limit else 0.0,
            reports=1.0,
        )

    def _is_over(self, tallies: Tallies | None) -> bool:
        limit = self.settings.max_steps
        return bool(tallies and tallies.time_share >= 1.0) or bool(limit and self.cursor.step >= limit)

    def _is_save_due(self) -> bool:
        """Whether a multiple of the setting was reached since the last call, made when workers have settled."""
        every, before = self.settings.checkpoint_steps, self.save_checked_step
        self.save_checked_step = self.cursor.step
        return self.cursor.step // every > before // every

    def _save(self) -> bool:
        """Save a checkpoint; return whether that succeeded, as far as this rank knows."""
        with self.strategy.profile.span(SAVE):
            state = self.strategy.state_dict()  # on every rank, because it may gather
            return self.grid.column.rank != 0 or self.recorder.save(lambda: self.checkpoint(state), self.grid.row)

    def _rate(self, step: int) -> float:
        """The learning rate, which reaches its end with the time limit if that comes before the last step."""
        return self.schedule(step, self.cursor.time_share)

    def _own_norm(self) -> float:
        """The norm of the gradient that this worker holds at present."""
        norms = [torch.linalg.vector_norm(gradient) for _, gradient in self.optimizer.gradients()]
        return float(torch.linalg.vector_norm(torch.stack(norms)))

    def _own_square(self, weight: float) -> tuple[float, ...]:
        """The squared norm of the mean gradient of this worker's samples, where the noise of gradients is measured."""
        if not self.strategy.measures_noise:
            return ()
        return ((self._own_norm() / weight) ** 2 if weight else 0.0,)

    def _clip(self) -> None:
        """Scale the gradient down to the largest allowed norm."""
        limit, norm = self.settings.clip, self.norm
        if limit and norm > limit:
            for _, gradient in self.optimizer.gradients():
                gradient.mul_(limit / norm)

    def _give_up_if_never_finite(self) -> None:
        if self.cursor.skipped_in_a_row >= MAX_SKIPPED:
            raise TrainingError(
                f"loss or gradient was not finite in {MAX_SKIPPED} steps in a row, the last at step {self.cursor.step}",
                remedy="lower --lr, or set --clip",
            )

    def _end_epoch(self) -> None:
        """Validate, keep the best weights, and decide whether to continue; every rank decides the same."""
        cursor = self.cursor
        if not self.strategy.is_settled:
            assert self.pending is not None
            stats = self.strategy.settle(self.pending, now=True)
            self.stats, self.wait_seconds = self.stats + stats, self.wait_seconds + stats.wait_seconds
            self._record_settled(self._rate(cursor.step - 1), time.perf_counter())
        for table in self.optimizer.tables.values():
            table.release()
        complete_weights(self.optimizer, self.grid.row)
        with self.strategy.profile.span(VALIDATE):
            valid = self.task.validate(self.model, self.group)
        described = valid.as_dict() if valid else {}
        score = _score(valid, cursor.epoch)
        if cursor.judge(score) or self.settings.keep == "last":
            cursor.best, cursor.best_epoch, cursor.best_valid = score, cursor.epoch + 1, described
            self.recorder.save_model(self.saved_weights())
        train_loss = cursor.loss_sum / cursor.weight_sum if cursor.weight_sum else None
        event = {"event": "epoch", "epoch": cursor.epoch + 1, "step": cursor.step, "seconds": cursor.seconds}
        self.recorder.log({**event, "train_loss": train_loss, "valid": described, **cursor.rates})
        cursor.end_epoch()
        is_stale = bool(self.settings.patience) and cursor.num_stale >= self.settings.patience
        cursor.is_finished |= is_stale or cursor.epoch >= self.settings.epochs

    def checkpoint(self, state: Mapping[str, Tensor]) -> Checkpoint:
        """The state of the run at this step; `state` is the strategy's."""
        tensors = {f"weights/{name}": weight for name, weight in self.optimizer.own.items()}
        tensors |= {f"state/{name}": value for name, value in self.optimizer.state_dict().items()}
        tensors |= {f"strategy/{name}": value for name, value in state.items()}
        values = {**vars(self.cursor), "applied": self.optimizer.step_count, "balance": self.balance.state()}
        return Checkpoint(self.cursor.step, tensors, values)

    def restore(self, saved: Checkpoint) -> None:
        """Continue from a checkpoint; ValueError if it does not fit this model."""
        values = dict(saved.values)
        applied, balance = values.pop("applied", None), values.pop("balance", {})
        if type(applied) is not int or not 0 <= applied < 1 << 63:
            raise ValueError(f"applied cannot be {applied!r:.40}")
        self.cursor = Cursor.from_dict(values)
        self.balance.restore(balance)
        for name, weight in self.optimizer.weights.items():
            copy_saved(weight, saved.tensors, f"weights/{name}")
        self.save_checked_step = self.cursor.step
        self.optimizer.load_state_dict(_under("state/", saved.tensors), applied)
        self.strategy.load_state_dict(_under("strategy/", saved.tensors))

    def saved_weights(self) -> dict[str, Tensor]:
        """What model.safetensors holds: the trained weights, and the numbers that are computed without training."""
        return {**self.optimizer.weights, **dict(self.model.named_buffers())}

    def _rows(self) -> dict[str, int]:
        """The number of training rows that were read, and of those that were made from them if there are any."""
        added = self.task.num_added
        read = self.task.order.num_rows - added
        return {"train_rows": read, "added_rows": added} if added else {"train_rows": read}

    def sizes(self) -> dict[str, Any]:
        """How large the parts of the run are: training rows, bytes of dense weights, rows and bytes of tables."""
        weights, tables = self.optimizer.weights, self.optimizer.tables
        return {
            **self._rows(),
            "dense_bytes": sum(weight.nbytes for name, weight in weights.items() if name not in tables),
            "tables": {
                name.removesuffix(".weight"): {
                    "rows": len(weights[name]),
                    "row_bytes": weights[name].nbytes // len(weights[name]),
                }
                for name in tables
            },
        }

    def summary(self) -> dict[str, Any]:
        """The result of the run, without the metrics on the test rows."""
        cursor = self.cursor
        return {
            "steps": cursor.step,
            **self._rows(),
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


def _rms(squares: list[float], shares: list[float]) -> float:
    """The root of the mean of the squares, over the workers that had samples."""
    seen = [square for square, rows in zip(squares, shares, strict=True) if rows]
    return math.sqrt(sum(seen) / len(seen)) if seen else 0.0


def _score(valid: Metrics | None, epoch: int) -> float:
    """The score by which epochs are compared.

    For two classes it is the AUC, which varies less than accuracy on few rows. For more classes it is the accuracy,
    because the AUC can be perfect long before the labels are. Without validation, later epochs are better.
    """
    if valid is None:
        return float(epoch)
    return valid.accuracy if valid.auc is None or len(valid.confusion) > 2 else valid.auc
