"""What the loop tells the outside: rank 0 writes, the others keep silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from tenor.errors import TrainingError
from tenor.training.checkpoint import Checkpoint, save_checkpoint
from tenor.training.run_folder import RunFolder

Tell = Callable[[dict[str, Any]], None]


class Recorder(Protocol):
    def log(self, event: dict[str, Any]) -> None: ...

    def save(self, make: Callable[[], Checkpoint]) -> None: ...

    def save_model(self, weights: dict[str, Tensor]) -> None: ...


class Silence:
    """The recorder of every rank but the first."""

    def log(self, event: dict[str, Any]) -> None:
        pass

    def save(self, make: Callable[[], Checkpoint]) -> None:
        pass

    def save_model(self, weights: dict[str, Tensor]) -> None:
        pass


class Scribe:
    """Rank 0's recorder: events to the run folder and to whoever watches."""

    def __init__(self, folder: RunFolder, keep: int, tell: Tell) -> None:
        self.folder, self.keep, self.tell = folder, keep, tell

    def log(self, event: dict[str, Any]) -> None:
        self.folder.log(event)
        self.tell(event)

    def save(self, make: Callable[[], Checkpoint]) -> None:
        """A disk that is full loses this checkpoint, not the run: the previous one stays."""
        checkpoint = make()
        if not are_finite(checkpoint.tensors):
            self.tell({"event": "warning", "message": "weights are not finite: not saved; the previous ones are kept"})
            return
        try:
            save_checkpoint(self.folder.checkpoints, checkpoint, self.keep)
        except OSError as error:
            self.tell({"event": "warning", "message": f"checkpoint not saved: {error}; the previous one is kept"})

    def save_model(self, weights: dict[str, Tensor]) -> None:
        if not are_finite(weights):
            raise TrainingError(
                "the weights are not finite", where=self.folder.path, remedy="lower --lr, or set --clip"
            )
        self.folder.save_model(weights)


def are_finite(tensors: Mapping[str, Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())
