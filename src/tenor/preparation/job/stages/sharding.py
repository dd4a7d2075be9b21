"""The shard stage: the kept rows of a split, in the order of their hash, to shards of vocabulary ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tenor.engines.stage import JobStage
from tenor.preparation.job.outputs import finished, load_arrays, making, save_result
from tenor.preparation.job.stages.dedupe import KeptRows
from tenor.preparation.job.stages.mapping import SliceRows
from tenor.preparation.job.stages.translating import IdTable
from tenor.preparation.job.stages.word_ids import translate_rows
from tenor.preparation.job.work_folder import WorkFolder
from tenor.preparation.tokeniser.spelling import Spelling, spell_rows, spelled_lengths
from tenor.store.manifest import ALL_SPLITS, ShardInfo
from tenor.store.shard import Shard, token_type, write_shard

TOKENS_PER_SHARD = 16 << 20


@dataclass(frozen=True)
class ShardTask:
    """Write one shard: the rows of a split whose hash begins with the bits of `shard`."""

    work: WorkFolder
    number: int  # among the shards of all splits
    split: str
    shard: int  # among the shards of the split
    shard_bits: int  # the split has 2^shard_bits shards
    parts: tuple[int, ...]  # the text parts that hold its rows
    vocab_size: int
    units: str  # what the entries of the vocabulary are: words or characters
    max_length: int  # tokens kept of each row
    file: str  # the shard's name in the result


@dataclass(frozen=True)
class ShardRows:
    """Where the rows of a shard are, and their labels."""

    slices: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    labels: npt.NDArray[np.uint8]


def shard_bits(tokens: int) -> int:
    """A split with so many tokens has 2^bits shards. Each is a range of hashes, so they have about the same size."""
    return max(0, (-(-tokens // TOKENS_PER_SHARD) - 1).bit_length())


def overlapping_parts(shard: int, bits: int, part_bits: int) -> tuple[int, ...]:
    """The text parts that share hashes with a shard.

    Args:
        shard: Number of the shard within its split.
        bits: The split has 2^bits shards.
        part_bits: There are 2^part_bits text parts.
    """
    if bits >= part_bits:
        return (shard >> (bits - part_bits),)
    width = 1 << (part_bits - bits)
    return tuple(range(shard * width, (shard + 1) * width))


@JobStage
def make_shard(task: ShardTask) -> ShardInfo:
    """Write one shard."""
    path = task.work.shard(task.number)
    if (known := finished(path, ShardInfo)) is not None:
        return known
    rows = _rows(task)
    spelled = _spell_lengths(task, rows) if task.units == "characters" else rows.lengths.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(spelled)]).astype(np.int64)
    tokens = np.empty(offsets[-1], token_type(task.vocab_size))
    for number, mine in _by_slice(rows):
        ids = load_arrays(task.work.slice(number), SliceRows).ids
        ids_of = load_arrays(task.work.id_table(number), IdTable)
        table, starts = ids_of.table.astype(tokens.dtype), rows.starts[mine]
        if task.units == "characters":
            spell_rows(ids, table, ids_of.starts, starts, offsets[mine], spelled[mine], tokens)
        else:
            translate_rows(ids, table, starts, spelled[mine], offsets[mine], tokens)
    with making(path) as folder:
        info = write_shard(folder, Path(task.file).name, Shard(tokens, offsets, rows.labels))
        return save_result(folder, dataclasses.replace(info, file=task.file))


def _spell_lengths(task: ShardTask, rows: ShardRows) -> npt.NDArray[np.int64]:
    """The number of characters of each row."""
    found, lengths = np.empty(len(rows.lengths), np.int64), rows.lengths.astype(np.int64)
    for number, mine in _by_slice(rows):
        ids = load_arrays(task.work.slice(number), SliceRows).ids
        ids_of = load_arrays(task.work.id_table(number), IdTable)
        spelling = Spelling(ids_of.table, ids_of.starts)
        found[mine] = spelled_lengths(ids, spelling, rows.starts[mine], lengths[mine], task.max_length)
    return found


def _by_slice(rows: ShardRows) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """(number of a slice, which rows of the shard it holds)."""
    for number in np.unique(rows.slices).tolist():
        yield number, np.flatnonzero(rows.slices == number)


def _rows(task: ShardTask) -> ShardRows:
    """The kept rows of the split whose hash is in the shard's range."""
    slices, starts, lengths, labels = [], [], [], []
    for part in task.parts:
        rows = load_arrays(task.work.text_part(part), KeptRows)
        mine = rows.splits == ALL_SPLITS.index(task.split)
        if task.shard_bits:
            mine &= (rows.hashes >> np.uint64(64 - task.shard_bits)) == np.uint64(task.shard)
        slices.append(rows.slices[mine])
        starts.append(rows.starts[mine])
        lengths.append(rows.lengths[mine])
        labels.append(rows.labels[mine])
    return ShardRows(np.concatenate(slices), np.concatenate(starts), np.concatenate(lengths), np.concatenate(labels))
