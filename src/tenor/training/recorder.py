"""What the loop tells the outside: rank 0 writes, the others keep silent and save their part of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

from tenor.errors import TrainingError
from tenor.training.checkpoint import Checkpoint, are_finite, save_checkpoint
from tenor.training.groups import Group
from tenor.training.run_folder import RunFolder

Tell = Callable[[dict[str, Any]], None]


class Recorder(Protocol):
    def log(self, event: dict[str, Any]) -> None: ...

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        """Save a checkpoint together with the ranks of the row, each its part; whether that went well."""

    def save_model(self, weights: dict[str, Tensor]) -> None: ...


class Silence:
    """The recorder of every rank but the first."""

    def __init__(self, folder: RunFolder, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def log(self, event: dict[str, Any]) -> None:
        pass

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        try:
            save_checkpoint(self.folder.checkpoints, make(), self.keep, row)
        except (OSError, ValueError):  # the first rank tells
            return False
        return True

    def save_model(self, weights: dict[str, Tensor]) -> None:
        pass


class Scribe:
    """Rank 0's recorder: events to the run folder and to whoever watches."""

    def __init__(self, folder: RunFolder, keep: int, tell: Tell) -> None:
        self.folder, self.keep, self.tell = folder, keep, tell

    def log(self, event: dict[str, Any]) -> None:
        self.folder.log(event)
        self.tell(event)

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        """A disk that is full loses this checkpoint, not the run: the previous one stays."""
        try:
            save_checkpoint(self.folder.checkpoints, make(), self.keep, row)
        except (OSError, ValueError) as error:
            self.tell({"event": "warning", "message": f"checkpoint not saved: {error}; the previous one is kept"})
            return False
        return True

    def save_model(self, weights: dict[str, Tensor]) -> None:
        if not are_finite(weights):
            raise TrainingError(
                "the weights are not finite", where=self.folder.path, remedy="lower --lr, or set --clip"
            )
        self.folder.save_model(weights)
