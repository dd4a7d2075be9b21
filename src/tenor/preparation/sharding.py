"""The last stage: kept rows, in the order of their hash, to shards of vocabulary ids."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.preparation import dedupe, mapping
from tenor.preparation.ragged import translate_rows
from tenor.preparation.workfolder import finished, load, making, part_path, save_meta
from tenor.store.manifest import SPLITS
from tenor.store.shard import Shard, token_type, write_shard

STAGE = "tenor.preparation.sharding:run"
FOLDER = "shards"
TOKENS_A_SHARD = 16 << 20


def shard_bits(tokens: int) -> int:
    """A split has 2^bits shards, each a range of hashes, so they come out about equal."""
    return max(0, (-(-tokens // TOKENS_A_SHARD) - 1).bit_length())


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Write one shard."""
    path = part_path(task["work"], FOLDER, task["number"])
    if (known := finished(path)) is not None:
        return known
    rows = _rows(task)
    lengths = rows["lengths"].astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.empty(offsets[-1], token_type(task["vocab_size"]))
    for number in np.unique(rows["slices"]).tolist():
        mine = np.flatnonzero(rows["slices"] == number)
        ids = load(part_path(task["work"], mapping.FOLDER, number))["ids"]
        table = load(part_path(task["work"], "tables", number))["table"]
        translate_rows(ids, table.astype(tokens.dtype), rows["starts"][mine], lengths[mine], offsets[mine], tokens)
    with making(path) as folder:
        info = write_shard(folder, Path(task["file"]).name, Shard(tokens, offsets, rows["labels"]))
        return save_meta(folder, {**dataclasses.asdict(info), "file": task["file"]})


def _rows(task: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The kept rows of the split whose hashes fall into the shard's range."""
    names = ("slices", "starts", "lengths", "labels")
    found: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}
    for part in task["parts"]:
        rows = load(part_path(task["work"], dedupe.FOLDER, part))
        mine = rows["splits"] == SPLITS.index(task["split"])
        if task["bits"]:
            mine &= (rows["hashes"] >> np.uint64(64 - task["bits"])) == np.uint64(task["shard"])
        for name in names:
            found[name].append(rows[name][mine])
    return {name: np.concatenate(arrays) for name, arrays in found.items()}
