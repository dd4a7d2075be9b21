"""Checkpoints of word vectors: continued to the bit, and refused if they are damaged or of another training."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tenor.embedding.workers.checkpoints import SavedProgress, load_checkpoint, remove_leftovers, save_checkpoint
from tenor.embedding.workers.tables import Tables
from tenor.errors import RunError

SHAPE = (6, 4, 3, 1)
PROGRESS, IDENTITY = SavedProgress(7, 1.5, 6.0, 2.25), {"--dim": 3, "text": "abc"}


def make_tables() -> Tables:
    """Tables whose memory goes with the last reference to them."""
    with closing(Tables(*SHAPE)) as tables:
        return tables


def fill(tables: Tables, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for table in tables.both:
        table[:] = rng.normal(size=table.shape)


def test_the_last_checkpoint_is_continued(tmp_path: Path) -> None:
    tables = make_tables()
    assert load_checkpoint(tmp_path, tables, IDENTITY) is None
    fill(tables, 1)
    save_checkpoint(tmp_path, tables, SavedProgress(5, 1.0, 4.0, 2.0), IDENTITY)
    fill(tables, 2)
    save_checkpoint(tmp_path, tables, PROGRESS, IDENTITY)
    expected = [table.copy() for table in tables.both]
    fill(tables, 3)
    assert load_checkpoint(tmp_path, tables, IDENTITY) == PROGRESS and PROGRESS.mean == 0.25
    for table, saved in zip(tables.both, expected, strict=True):
        np.testing.assert_array_equal(table, saved)
    files = sorted(file.name for file in (tmp_path / "checkpoint").iterdir())
    assert files == ["progress.json", "tables-7.safetensors"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("blocks", -1, "is damaged"),
        ("blocks", "7", "is damaged"),
        ("tables", "../../secret", "is damaged"),
        ("loss", "much", "is damaged"),
        ("seconds", -1.0, "is damaged"),
        ("identity", {"--dim": 4, "text": "abc"}, "begun with another dim"),
        ("identity", None, "begun with another dim"),
    ],
)
def test_a_damaged_record_is_refused(tmp_path: Path, name: str, value: object, message: str) -> None:
    tables = make_tables()
    save_checkpoint(tmp_path, tables, PROGRESS, IDENTITY)
    file = tmp_path / "checkpoint" / "progress.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))
    with pytest.raises(RunError, match=message):
        load_checkpoint(tmp_path, tables, IDENTITY)


def test_what_a_killed_process_has_half_written_is_removed(tmp_path: Path) -> None:
    tables = make_tables()
    save_checkpoint(tmp_path, tables, PROGRESS, IDENTITY)
    (tmp_path / "notes.tmp").touch()
    (tmp_path / ".vectors.safetensors.0123.tmp").touch()
    (tmp_path / "checkpoint" / ".tables-8.safetensors.0123.tmp").touch()
    remove_leftovers(tmp_path)
    left = sorted(file.name for file in tmp_path.rglob("*") if file.is_file())
    assert left == ["notes.tmp", "progress.json", "tables-7.safetensors"]
    assert load_checkpoint(tmp_path, tables, IDENTITY) == PROGRESS


@pytest.mark.parametrize("damage", ["truncated", "not finite", "flipped", "a link", "missing"])
def test_damaged_tables_are_refused(tmp_path: Path, damage: str) -> None:
    tables = make_tables()
    if damage == "not finite":
        tables.outputs[1, 1] = np.inf
    save_checkpoint(tmp_path, tables, PROGRESS, IDENTITY)
    file = tmp_path / "checkpoint" / "tables-7.safetensors"
    if damage == "truncated":
        os.truncate(file, file.stat().st_size - 4)
    elif damage == "flipped":
        file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    elif damage == "missing":
        file.unlink()
    elif damage == "a link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=str(file)):
        load_checkpoint(tmp_path, tables, IDENTITY)


def test_a_folder_that_is_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    tables = make_tables()
    save_checkpoint(tmp_path, tables, PROGRESS, IDENTITY)
    victim = (tmp_path / "checkpoint").rename(tmp_path / "victim")
    (tmp_path / "checkpoint").symlink_to(victim)
    before = {file.name: file.read_bytes() for file in victim.iterdir()}
    with pytest.raises(RunError, match="is a symbolic link"):
        load_checkpoint(tmp_path, tables, IDENTITY)
    with pytest.raises(RunError, match="is a symbolic link"):
        remove_leftovers(tmp_path)
    with pytest.raises(RunError, match="is a symbolic link"):
        save_checkpoint(tmp_path, tables, SavedProgress(5, 1.0, 4.0, 2.0), IDENTITY)
    assert before == {file.name: file.read_bytes() for file in victim.iterdir()}
