"""What `--resume` finds: a run that is finished stays as it is; one that is not goes on only as it began."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.store.manifest import Manifest

# Settings that shape weights and their state, or decide which rows make a batch
FIXED = (
    "task",
    "cell",
    "hidden",
    "layers",
    "embedding_dim",
    "bidirectional",
    "pooling",
    "optimizer",
    "momentum",
    "batch_size",
    "seed",
)
LENGTH = ("epochs", "max_steps", "max_seconds")


def finished_result(run: Path, data: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result of a run that has one; it cannot be trained further, so it must have been asked for the same."""
    if not (run / "result.json").exists():
        return None
    before = _read(run / "config.json")
    _compare(run, before.get("settings", {}), settings, (*FIXED, *LENGTH), "is finished")
    if "data_sha256" in before:  # else it was trained on no files
        _compare_data(run, before, Manifest.load(data).sha256)
    return _read(run / "result.json")


def check_same(run: Path, config: Mapping[str, Any]) -> None:
    """Refuse to go on with other data or settings: some rows would be seen twice and some never."""
    if not (run / "config.json").exists():
        return
    before = _read(run / "config.json")
    _compare(run, before.get("settings", {}), config["settings"], FIXED, "was begun")
    _compare_data(run, before, config.get("data_sha256"))


def _compare_data(run: Path, before: Mapping[str, Any], now: str | None) -> None:
    if before.get("data_sha256") != now:
        raise RunError("was begun with other data", where=run, remedy="give its data, or another --out")


def _compare(run: Path, before: Mapping[str, Any], now: Mapping[str, Any], names: Iterable[str], how: str) -> None:
    for name in names:
        if name in before and before[name] != now[name]:
            option = f"--{name.replace('_', '-')}"
            what = f"{how} with {option} {before[name]}, not {now[name]}"
            raise RunError(what, where=run, remedy=f"give {option} {before[name]}, or another --out")


def _read(file: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"cannot be read: {error}", where=file, remedy="train again in another folder") from error
    return values
