"""The position of a run: all of its state that is not a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tenor.training.strategies.base import SyncStats
from tenor.training.tallies import Tallies


@dataclass
class Cursor:
    """The position of a run and its running totals."""

    epoch: int = 0
    batch: int = 0  # the next batch within the epoch
    step: int = 0
    seconds: float = 0.0  # since training began, validation included
    step_seconds: float = 0.0  # in steps only
    time_share: float = 0.0  # of --max-seconds that was over when the workers last settled
    samples: int = 0
    tokens: int = 0
    loss_sum: float = 0.0  # in this epoch
    weight_sum: float = 0.0
    bytes_sent: int = 0  # by the first worker
    bytes_saved: int = 0  # through compression
    staleness_sum: int = 0  # over all steps
    staleness_max: int = 0
    requeued: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    best: float = -math.inf
    best_epoch: int = 0
    best_valid: dict[str, Any] = field(default_factory=dict)
    num_stale: int = 0  # epochs in a row without a better score
    is_finished: bool = False

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cursor:
        """Make a cursor from the values in a checkpoint. Values that older checkpoints do not have keep their defaults.

        Raises:
            ValueError: A value is unknown, of another type or out of range.
        """
        start = vars(cls())
        for name, value in values.items():
            if name not in start:
                raise ValueError(f"has the unknown value {name!r:.60}")
            if not _fits(name, value, start[name]):
                raise ValueError(f"{name} cannot be {value!r:.40}")
        return cls(**values)

    def move(self, applied: bool, seconds: float) -> None:
        """Advance by one step. `applied` is False if the update was skipped."""
        self.step += 1
        self.batch += 1
        self.step_seconds += seconds
        if applied:
            self.skipped_in_a_row = 0
        else:
            self.skipped += 1
            self.skipped_in_a_row += 1

    def count(self, tallies: Tallies, stats: SyncStats) -> None:
        """Add the totals of a step. A loss that is not finite belongs to a skipped step and is left out."""
        self.bytes_sent += stats.bytes_sent
        self.bytes_saved += stats.bytes_saved
        self.staleness_sum += stats.staleness
        self.staleness_max = max(self.staleness_max, stats.staleness)
        self.requeued += stats.requeued
        self.time_share = tallies.time_share
        self.samples += round(tallies.samples)
        self.tokens += round(tallies.tokens)
        if math.isfinite(tallies.loss):
            self.loss_sum += tallies.loss
            self.weight_sum += tallies.weight

    def judge(self, score: float) -> bool:
        """Note the validation score of an epoch. Returns whether its weights should be kept as the best.

        Patience counts epochs without a better score, so an equal score is not better. Of equally good weights, the
        later are kept.
        """
        self.num_stale = 0 if score > self.best else self.num_stale + 1
        return score >= self.best

    def end_epoch(self) -> None:
        self.epoch += 1
        self.batch = 0
        self.loss_sum = self.weight_sum = 0.0

    @property
    def rates(self) -> dict[str, float]:
        seconds = max(self.step_seconds, 1e-9)
        return {"samples_per_s": self.samples / seconds, "tokens_per_s": self.tokens / seconds}


def _fits(name: str, value: Any, start: Any) -> bool:
    """Whether a value has the type of its default and a valid range.

    Counts and seconds are not negative. The best score may be minus infinity.
    """
    if type(start) is int:
        return type(value) is int and 0 <= value < 1 << 63
    if type(start) is not float:
        return type(value) is type(start)
    if type(value) not in (int, float) or not abs(value) < 1e300:
        return name == "best" and value == -math.inf
    return value >= 0 or name in ("best", "loss_sum")
