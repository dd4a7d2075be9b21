"""The folder a run leaves: config, vocabulary, environment, metrics, checkpoints, weights, result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from tenor.environment import describe
from tenor.errors import naming
from tenor.store.atomic import write_bytes
from tenor.training.card import model_card

CHECKPOINTS = "checkpoints"


class RunFolder:
    """Only rank 0 writes here, but for parts of checkpoints; every rank may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS

    def start(self, config: Mapping[str, Any], vocabulary: Path | None) -> None:
        for left in self.path.glob(".*.tmp"):  # by a process that was killed
            left.unlink(missing_ok=True)
        self._write("config.json", config)
        self._write("environment.json", {**describe(), "threads": torch.get_num_threads()})
        if vocabulary is not None:
            write_bytes(self.path / "vocab.json", vocabulary.read_bytes())

    def log(self, event: Mapping[str, Any]) -> None:
        path = self.path / "metrics.jsonl"
        with naming(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def rewind(self, step: int) -> None:
        """Drop events later than the step a run goes on from; they will happen again."""
        log = self.path / "metrics.jsonl"
        events = log.read_text("utf-8").splitlines() if log.exists() else []
        kept = [line for line in events if _is_before(line, step)]
        write_bytes(log, "".join(line + "\n" for line in kept).encode())

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        data = save_tensors({name: tensor.cpu().contiguous() for name, tensor in weights.items()})
        write_bytes(self.path / "model.safetensors", data)

    def load_model(self) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = load_tensors((self.path / "model.safetensors").read_bytes())
        return weights

    def finish(self, result: Mapping[str, Any]) -> None:
        config = json.loads((self.path / "config.json").read_bytes())
        write_bytes(self.path / "README.md", model_card(config, result).encode())
        self._write("result.json", result)  # from now on the run is finished
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        write_bytes(self.path / name, (json.dumps(values, indent=1) + "\n").encode())


def _is_before(line: str, step: int) -> bool:
    try:
        event = json.loads(line)
    except ValueError:  # a line cut short by a kill
        return False
    return bool(event["event"] != "end" and event["step"] <= step)
