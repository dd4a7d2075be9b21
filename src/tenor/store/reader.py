"""Read the rows of a split by number, across its shards."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from tenor.errors import StoreError
from tenor.store.manifest import UNLABELLED, Manifest
from tenor.store.ragged import copy_rows
from tenor.store.shard import map_shard
from tenor.store.verify import verify_split


class Split:
    """The rows of some splits, numbered from 0 across their shards. The labels of UNLABELLED are all NO_LABEL."""

    def __init__(self, folder: Path, manifest: Manifest, *names: str) -> None:
        self._shards = [
            map_shard(folder, shard, manifest, is_labelled=name != UNLABELLED)
            for name in names
            for shard in manifest.splits[name].shards
        ]
        counts = [len(shard.labels) for shard in self._shards]
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        lengths = [np.empty(0, np.int64), *(np.diff(shard.offsets) for shard in self._shards)]
        self.lengths: npt.NDArray[np.int32] = np.concatenate(lengths).astype(np.int32)
        self.labels: npt.NDArray[np.uint8] = np.concatenate(
            [np.empty(0, np.uint8), *(shard.labels for shard in self._shards)]
        )

    def __len__(self) -> int:
        return int(self._first[-1])

    def gather(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(tokens, lengths) of the given rows; the tokens follow each other in the order of `rows`."""
        rows = np.asarray(rows, np.int64)
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths, dtype=np.int64)
        tokens = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
        homes = np.searchsorted(self._first, rows, "right") - 1
        for home in np.unique(homes):
            mine = np.flatnonzero(homes == home)
            shard = self._shards[home]
            starts = np.asarray(shard.offsets[rows[mine] - self._first[home]])
            copy_rows(shard.tokens, starts, lengths[mine], ends[mine] - lengths[mine], tokens)
        return tokens, lengths

    def close(self) -> None:
        """Unmap the files."""
        self._shards = []

    def __enter__(self) -> Split:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_split(folder: Path | str, name: str, *, verify: bool = True) -> Split:
    """Open a split of prepared data.

    Args:
        folder: The prepared data.
        name: `train`, `valid`, `test` or, if the data has it, `unlabelled`.
        verify: Compare every shard with its hash and the manifest first. False is for data that `verify_data` has
            already checked; then the tokens are not checked.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    if name not in manifest.splits:
        raise StoreError(f"has no split {name!r}", where=folder, remedy=f"choose one of {', '.join(manifest.splits)}")
    if verify:
        verify_split(folder, manifest, name)
    return Split(folder, manifest, name)
