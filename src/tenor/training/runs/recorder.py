"""Where the training loop reports events and saves checkpoints: rank 0 writes, the others only save their part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

from tenor.errors import TrainingError
from tenor.groups import Group
from tenor.models.weights import are_finite
from tenor.training.runs.checkpoint import Checkpoint, resume_point, save_checkpoint
from tenor.training.runs.folder import RunFolder

EventHandler = Callable[[dict[str, Any]], None]


class Recorder(Protocol):
    """What the training loop needs to report."""

    def log(self, event: dict[str, Any]) -> None:
        """Record an event."""

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        """Save a checkpoint together with the other ranks of the row. Returns whether all parts were saved."""

    def resume_point(self) -> str:
        """A sentence for people: the step that --resume would continue from."""

    def save_model(self, weights: dict[str, Tensor]) -> None:
        """Save the weights as the result of the run."""


class OtherRankRecorder:
    """The recorder of every rank but the first: saves parts of checkpoints and records nothing."""

    def __init__(self, folder: RunFolder, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def log(self, event: dict[str, Any]) -> None:
        pass

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        try:
            save_checkpoint(self.folder.checkpoints, make(), self.keep, row)
        except (OSError, ValueError):  # the first rank warns
            return False
        return True

    def resume_point(self) -> str:
        return resume_point(self.folder.checkpoints)

    def save_model(self, weights: dict[str, Tensor]) -> None:
        pass


class FirstRankRecorder:
    """The recorder of rank 0: writes events to the run folder and passes them to a handler."""

    def __init__(self, folder: RunFolder, keep: int, handle: EventHandler) -> None:
        self.folder, self.keep, self.handle = folder, keep, handle

    def log(self, event: dict[str, Any]) -> None:
        self.folder.log(event)
        self.handle(event)

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        """Save a checkpoint. A full disk only loses this checkpoint: the run continues, and earlier ones remain."""
        try:
            save_checkpoint(self.folder.checkpoints, make(), self.keep, row)
        except (OSError, ValueError) as error:
            self.handle({"event": "warning", "message": f"checkpoint not saved: {error}; {self.resume_point()}"})
            return False
        return True

    def resume_point(self) -> str:
        return resume_point(self.folder.checkpoints)

    def save_model(self, weights: dict[str, Tensor]) -> None:
        if not are_finite(weights):
            raise TrainingError(
                "the weights are not finite", where=self.folder.path, remedy="lower --lr, or set --clip"
            )
        self.folder.save_model(weights)
