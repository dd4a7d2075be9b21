"""Checkpoints of a training of word vectors: one safetensors file with both tables and how far the training was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from tenor.embedding.workers.tables import Tables
from tenor.errors import RunError
from tenor.models.weights import read_weights, write_weights
from tenor.store.atomic import write_json
from tenor.store.trusted import read_json

FOLDER, TABLES, PROGRESS = "checkpoint", "tables-{}.safetensors", "progress.json"
PROGRESS_BYTES = 1 << 16


@dataclass(frozen=True)
class SavedProgress:
    """How far a training was when its tables were saved."""

    blocks: int  # that are done, over all epochs
    loss: float  # the sum, and the number of losses summed
    num_losses: float
    seconds: float

    @property
    def mean(self) -> float:
        """The mean loss."""
        return self.loss / self.num_losses if self.num_losses else float("nan")


def save_checkpoint(out: Path, tables: Tables, progress: SavedProgress, identity: Mapping[str, object]) -> None:
    """Save the tables under a new name, then the progress that names them, then drop the older tables."""
    folder = _folder_in(out)
    folder.mkdir(exist_ok=True)
    name = TABLES.format(progress.blocks)
    write_weights(folder / name, _tensors(tables))
    write_json(folder / PROGRESS, {**vars(progress), "tables": name, "identity": dict(identity)})
    for old in folder.glob(TABLES.format("*")):
        if old.name != name:
            old.unlink(missing_ok=True)


def load_checkpoint(out: Path, tables: Tables, identity: Mapping[str, object]) -> SavedProgress | None:
    """Fill the tables from the checkpoint; None if there is none.

    Raises:
        RunError: The checkpoint is damaged or incomplete, or belongs to other settings or another text.
    """
    folder = _folder_in(out)
    try:
        saved = read_json(folder / PROGRESS, PROGRESS_BYTES, RunError)
        kept = saved.get("identity")
        if kept != identity:
            names = [name for name in identity if not isinstance(kept, dict) or kept.get(name) != identity[name]]
            what = f"was begun with another {names[0] if names else 'version'}"
            raise RunError(what, where=out, remedy="use the settings and the text it was begun with, or another --out")
        blocks, name = saved.get("blocks"), saved.get("tables")
        figures = [saved.get(key) for key in ("loss", "num_losses", "seconds")]
        if type(blocks) is not int or blocks < 0 or name != TABLES.format(blocks):
            raise RunError("is damaged", where=folder / PROGRESS, remedy="train again in another folder")
        if any(not isinstance(value, int | float) or value < 0 for value in figures):
            raise RunError("is damaged", where=folder / PROGRESS, remedy="train again in another folder")
    except FileNotFoundError:
        return None
    into, file = _tensors(tables), folder / str(name)
    try:
        read_weights(file, {key: tuple(tensor.shape) for key, tensor in into.items()}, into)
    except FileNotFoundError:
        raise RunError("does not exist", where=file, remedy="copy it again, or train again in another folder") from None
    return SavedProgress(blocks, *(float(value) for value in figures if value is not None))


def remove_leftovers(out: Path) -> None:
    """Remove what a killed process has half written. Nobody else may be at work in the folder."""
    for folder in (out, _folder_in(out)):
        for left in folder.glob(".*.tmp"):
            left.unlink(missing_ok=True)


def _folder_in(out: Path) -> Path:
    """The folder of the checkpoint; a link could lead to any folder, whose files would be overwritten and removed."""
    folder = out / FOLDER
    if folder.is_symlink():
        raise RunError("is a symbolic link, not a folder", where=folder, remedy="remove the link")
    return folder


def _tensors(tables: Tables) -> dict[str, torch.Tensor]:
    return {"inputs": torch.from_numpy(tables.inputs), "outputs": torch.from_numpy(tables.outputs)}
