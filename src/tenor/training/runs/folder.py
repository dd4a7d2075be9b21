"""The run folder: config, vocabulary, environment, metrics, checkpoints, weights and result."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import torch
from torch import Tensor

from tenor.environment import describe
from tenor.errors import RunError, naming
from tenor.models.weights import pack_weights, read_weights
from tenor.store.atomic import write_bytes, writing
from tenor.store.strict import strict_json
from tenor.store.trusted import open_regular
from tenor.training.runs.card import model_card
from tenor.training.tasks.base import CardText

CHECKPOINTS = "checkpoints"
METRICS = "metrics.jsonl"
MAX_BYTES = 4 << 30  # of metrics.jsonl
LINE_BYTES = 4 << 20  # of one of its lines


class RunFolder:
    """Only rank 0 writes to the folder, except for parts of checkpoints. Every rank may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS

    def start(self, config: Mapping[str, Any], vocabulary: Path | None, about: Mapping[str, Any]) -> None:
        """Write the files that describe the run, before the first step; `about` belongs to its environment."""
        for left in self.path.glob(".*.tmp"):  # left by a killed process
            left.unlink(missing_ok=True)
        self._write("config.json", config)
        self._write("environment.json", {**describe(), "threads": torch.get_num_threads(), **about})
        if vocabulary is not None:
            write_bytes(self.path / "vocab.json", vocabulary.read_bytes())

    def log(self, event: Mapping[str, Any]) -> None:
        """Append an event to metrics.jsonl."""
        with self._open_log() as file:
            file.write(strict_json(event) + "\n")

    def rewind(self, step: int) -> None:
        """Remove the events after `step`, from which the run continues, because they will happen again."""
        log = self.path / METRICS
        with writing(log) as kept, contextlib.suppress(FileNotFoundError), open_regular(log, RunError) as handle:
            if (size := os.fstat(handle).st_size) > MAX_BYTES:
                remedy = "train again in another folder"
                raise RunError(f"has {size:,} bytes; {MAX_BYTES:,} bytes allowed", where=log, remedy=remedy)
            with open(handle, "rb", closefd=False) as events:
                kept.writelines(f"{line}\n".encode() for line in _lines(events) if _is_before(line, step))

    @contextlib.contextmanager
    def _open_log(self) -> Iterator[IO[str]]:
        """Open metrics.jsonl for appending, but never the target of a link with that name."""
        path, flags = self.path / METRICS, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise RunError("is a symbolic link", where=path, remedy="remove the link") from error
        with naming(path), os.fdopen(handle, "a", encoding="utf-8") as file:
            yield file

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        write_bytes(self.path / "model.safetensors", pack_weights(weights))

    def load_model(self, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Load the weights kept so far, which must have the names and shapes of `like`."""
        return read_weights(self.path / "model.safetensors", {name: tuple(like[name].shape) for name in like})

    def finish(self, result: Mapping[str, Any], card: CardText) -> None:
        """Write the model card and the result, and remove the checkpoints."""
        config = json.loads((self.path / "config.json").read_bytes())
        write_bytes(self.path / "README.md", model_card(card, config["settings"], result).encode())
        self._write("result.json", result)  # this file marks the run as finished
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        write_bytes(self.path / name, (strict_json(values, indent=1) + "\n").encode())


def _lines(events: BinaryIO) -> Iterator[str]:
    """The lines of a log, one at a time. Overlong ones, which only a stranger writes, are cut and then not events."""
    while line := events.readline(LINE_BYTES):
        yield line.decode("utf-8", "replace").rstrip("\n")


def _is_before(line: str, step: int) -> bool:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # a line that a killed process has not finished
        return False
    if not isinstance(event, dict) or event.get("event") in (None, "end"):
        return False
    return isinstance(event.get("step"), int) and event["step"] <= step
