"""Write the events of a run for TensorBoard, in addition to metrics.jsonl."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from tenor.groups import Group
from tenor.training.runs.checkpoint import Checkpoint
from tenor.training.runs.recorder import Recorder

FOLDER = "tensorboard"
_STEP_FIGURES = ("loss", "lr", "bytes_sent")
_VALID_FIGURES = ("accuracy", "f1_macro", "auc")


class TensorBoardRecorder:
    """A recorder that also writes scalars for TensorBoard; the inner recorder does everything else."""

    def __init__(self, inner: Recorder, run: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.inner = inner
        self.writer: Any = SummaryWriter(str(run / FOLDER))

    def log(self, event: dict[str, Any]) -> None:
        self.inner.log(event)
        for name, value in scalars(event).items():
            self.writer.add_scalar(name, value, event["step"])
        if event["event"] != "step":
            self.writer.flush()

    def save(self, make: Callable[[], Checkpoint], row: Group) -> bool:
        return self.inner.save(make, row)

    def resume_point(self) -> str:
        return self.inner.resume_point()

    def save_model(self, weights: dict[str, Tensor]) -> None:
        self.inner.save_model(weights)


def scalars(event: dict[str, Any]) -> dict[str, float]:
    """The figures of an event that TensorBoard shows."""
    if event["event"] == "step":
        return {f"train/{name}": event[name] for name in _STEP_FIGURES if event.get(name) is not None}
    if event["event"] == "epoch":
        rates = {f"speed/{name}": event[name] for name in ("samples_per_s", "tokens_per_s")}
        valid = event["valid"]
        return rates | {f"valid/{name}": valid[name] for name in _VALID_FIGURES if valid.get(name) is not None}
    return {}
