"""Watches the workers of this machine: reports progress, saves checkpoints, and ends rounds with the other machines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tenor.embedding.workers.checkpoints import SavedProgress, save_checkpoint
from tenor.embedding.workers.machines import Machines
from tenor.embedding.workers.tables import BLOCKS, LOSS, NUM_LOSSES
from tenor.embedding.workers.team import WorkerTeam
from tenor.errors import Stopped
from tenor.progress import Progress

LOOK_SECONDS = 0.02  # between two looks at the workers
LOOK_SECONDS_TOGETHER = 0.005  # the same if other machines wait for the end of a round


@dataclass(frozen=True)
class TeamPlan:
    """What the supervisor must know besides its team.

    Attributes:
        folder: The folder of the vectors; None if another machine writes it.
        identity: What a checkpoint must have in common with a training that continues it.
        total: The blocks of all epochs.
        words_per_block: The words of the text, those outside the vocabulary included, by block.
        blocks_each: The blocks that each worker trains on in a round.
        checkpoint_seconds: The seconds between checkpoints.
        max_seconds: When to end early, if one machine trains alone; 0 for never.
    """

    folder: Path | None
    identity: Mapping[str, object]
    total: int
    words_per_block: float
    blocks_each: int
    checkpoint_seconds: float
    max_seconds: float = 0.0


class Supervisor:
    """Runs a team to the end of its work."""

    def __init__(self, plan: TeamPlan, team: WorkerTeam, machines: Machines, done: SavedProgress) -> None:
        self.plan, self.team, self.machines, self.done = plan, team, machines, done
        self.tables = team.tables
        self._pause = LOOK_SECONDS if machines.is_alone else LOOK_SECONDS_TOGETHER

    def run(self, progress: Progress) -> SavedProgress:
        """Train to the end.

        Raises:
            WorkerError: A worker failed, or another machine is lost.
            Stopped: A signal came, here or on another machine; a checkpoint was saved.
        """
        plan, rounds = self.plan, [self.plan.total]
        if not self.machines.is_alone:
            rounds = list(self.team.division.rounds(plan.total, plan.blocks_each))
        progress.start("embed", plan.total * plan.words_per_block, "word")
        progress.advance(self.done.blocks * plan.words_per_block)
        try:
            with self.team:
                while self.team.is_running() and not self.team.is_ready():
                    time.sleep(LOOK_SECONDS)
                self.machines.meet()
                self._began = self._saved_at = time.monotonic()  # starting processes and compiling are not training
                self._shown: float = self.done.blocks
                now = self.done
                for end in rounds:
                    now = self._run_round(end, progress)
        finally:
            progress.finish()
        return now

    def _run_round(self, end: int, progress: Progress) -> SavedProgress:
        self.tables.limit = end
        while self.team.is_in_round(end):
            time.sleep(self._pause)
            self._show(progress)
            if self.machines.is_alone and not self.team.signal:
                now = self._now()
                self._save_if_due(now)
                if now.num_losses and 0 < self.plan.max_seconds <= now.seconds:
                    self.tables.stop()
        own = self._now()
        ended = self.machines.end_round(own.loss, own.num_losses, self.team.signal)
        now = own if self.machines.is_alone else replace(own, blocks=end, loss=ended.loss, num_losses=ended.num_losses)
        if ended.signal and now.blocks < self.plan.total:
            self._save(now)
            raise Stopped(ended.signal, "saved a checkpoint; --resume continues from it")
        if not self.machines.is_alone and end < self.plan.total:
            self._save_if_due(now)
        return now

    def _now(self) -> SavedProgress:
        """How far this machine is."""
        sums, done = self.tables.counters.sum(axis=0), self.done
        is_counted = self.machines.group.rank == 0  # the losses before this start, once over all machines
        return SavedProgress(
            done.blocks + int(sums[BLOCKS]),
            done.loss * is_counted + float(sums[LOSS]),
            done.num_losses * is_counted + float(sums[NUM_LOSSES]),
            done.seconds + time.monotonic() - self._began,
        )

    def _show(self, progress: Progress) -> None:
        """Report the progress of all machines, which is about as many times this machine's as it has workers."""
        now, division = self._now(), self.team.division
        blocks = self.done.blocks + (now.blocks - self.done.blocks) * division.step / division.size
        if blocks > self._shown:
            note = f"loss {now.mean:.4f}" if now.num_losses else ""
            progress.advance((blocks - self._shown) * self.plan.words_per_block, note)
            self._shown = blocks

    def _save_if_due(self, now: SavedProgress) -> None:
        if time.monotonic() - self._saved_at > self.plan.checkpoint_seconds:
            self._save(now)
            self._saved_at = time.monotonic()

    def _save(self, now: SavedProgress) -> None:
        if self.plan.folder is not None:
            save_checkpoint(self.plan.folder, self.tables, now, self.plan.identity)
