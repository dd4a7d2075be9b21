"""Where training is: all of its state that is not a tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tenor.training.strategies.base import SyncStats
from tenor.training.tallies import Tallies


@dataclass
class Cursor:
    epoch: int = 0
    batch: int = 0  # the next one, within the epoch
    step: int = 0
    seconds: float = 0.0  # since training began, validation included
    step_seconds: float = 0.0  # in steps alone
    samples: int = 0
    tokens: int = 0
    loss_sum: float = 0.0  # of this epoch
    weight_sum: float = 0.0
    bytes_sent: int = 0  # by the first worker
    bytes_saved: int = 0  # by compression
    staleness_sum: int = 0  # over the steps
    staleness_max: int = 0
    requeued: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    best: float = -math.inf
    best_epoch: int = 0
    best_valid: dict[str, Any] = field(default_factory=dict)
    is_finished: bool = False

    def move(self, applied: bool, seconds: float) -> None:
        """Move on by one step."""
        self.step += 1
        self.batch += 1
        self.step_seconds += seconds
        if applied:
            self.skipped_in_a_row = 0
        else:
            self.skipped += 1
            self.skipped_in_a_row += 1

    def count(self, tallies: Tallies, stats: SyncStats) -> None:
        """Add up what the workers agreed on; a loss of steps that some worker skipped is no number."""
        self.bytes_sent += stats.bytes_sent
        self.bytes_saved += stats.bytes_saved
        self.staleness_sum += stats.staleness
        self.staleness_max = max(self.staleness_max, stats.staleness)
        self.requeued += stats.requeued
        self.samples += round(tallies.samples)
        self.tokens += round(tallies.tokens)
        if math.isfinite(tallies.loss):
            self.loss_sum += tallies.loss
            self.weight_sum += tallies.weight

    def end_epoch(self) -> None:
        self.epoch += 1
        self.batch = 0
        self.loss_sum = self.weight_sum = 0.0

    @property
    def rates(self) -> dict[str, float]:
        seconds = max(self.step_seconds, 1e-9)
        return {"samples_per_s": self.samples / seconds, "tokens_per_s": self.tokens / seconds}
