"""reference.safetensors: a sample of the reviews that a run's data consists of, so that new reviews can be compared.

The sample has token ids, not texts. It comes from rows that did not make the vocabulary, so that words are unknown in
it as often as in new reviews of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tenor.errors import RunError
from tenor.store.atomic import write_bytes
from tenor.store.ragged import copy_rows
from tenor.store.reader import Split
from tenor.store.trusted import read_bytes

NAME = "reference.safetensors"
ROWS = 5000
LENGTH = 256  # tokens of a review that are stored
FEWEST_HELD_OUT = 500  # with fewer rows outside the training split, the sample comes from the training rows
MAX_BYTES = 4 * ROWS * (LENGTH + 2) + (1 << 16)  # all tokens and lengths, and the header
_REMEDY = "copy the run folder again, or name the data with --reference"


@dataclass(frozen=True)
class Reference:
    """A sample of reviews."""

    tokens: NDArray[np.int32]  # of all rows, one row after another, at most LENGTH of each
    lengths: NDArray[np.int32]  # tokens of each row
    whole_lengths: NDArray[np.int32]  # tokens of each whole review
    is_held_out: bool  # whether the vocabulary was made without these rows

    def take(self, rows: NDArray[np.int64]) -> Reference:
        """Some of the rows."""
        tokens, lengths = gathered(self.tokens, self.lengths, rows)
        return Reference(tokens, lengths, self.whole_lengths[rows], self.is_held_out)


def gathered(
    tokens: NDArray[np.int32], lengths: NDArray[np.int32], rows: NDArray[np.int64], limit: int = 1 << 30
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(tokens, lengths) of some rows, of each at most the first `limit` tokens."""
    starts = np.cumsum(lengths, dtype=np.int64)[rows] - lengths[rows]
    short = np.minimum(lengths[rows], limit)
    ends = np.cumsum(short, dtype=np.int64)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
    copy_rows(tokens, starts, short, ends - short, out)
    return out, short.astype(np.int32)


def sample(splits: dict[str, Split], rows: int = ROWS) -> Reference:
    """A sample of prepared data: of the rows outside the training split, if there are enough."""
    outside = [split for name, split in splits.items() if name != "train"]
    is_held_out = sum(map(len, outside)) >= FEWEST_HELD_OUT
    chosen = outside if is_held_out else list(splits.values())
    total = sum(map(len, chosen))
    numbers = np.sort(np.random.default_rng(0).permutation(total)[:rows])
    tokens, lengths, whole, before = [], [], [], 0
    for split in chosen:
        own = numbers[(numbers >= before) & (numbers < before + len(split))] - before
        found, sizes = split.gather(own)
        short, short_sizes = gathered(found, sizes, np.arange(len(own)), LENGTH)
        tokens.append(short)
        lengths.append(short_sizes)
        whole.append(sizes)
        before += len(split)
    return Reference(np.concatenate(tokens), np.concatenate(lengths), np.concatenate(whole), is_held_out)


def write_reference(folder: Path, reference: Reference) -> None:
    """Write the sample of a run."""
    held_out = np.array([reference.is_held_out], np.uint8)
    arrays = {"tokens": reference.tokens, "lengths": reference.lengths, "whole_lengths": reference.whole_lengths}
    write_bytes(folder / NAME, save({**arrays, "is_held_out": held_out}))


def read_reference(folder: Path, num_ids: int) -> Reference | None:
    """Read the sample of a run, which may come from an untrusted source.

    Args:
        folder: The run folder.
        num_ids: Token ids are below this number.

    Returns:
        The sample; None if the run has none, because an older version trained it.

    Raises:
        RunError: The file is too large, damaged, or holds something else.
    """
    path = folder / NAME
    try:
        arrays = load(read_bytes(path, MAX_BYTES, RunError))
    except FileNotFoundError:
        return None
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"is not a sample of reviews: {error!s:.100}", where=path, remedy=_REMEDY) from None
    names = ("tokens", "lengths", "whole_lengths")
    if set(arrays) != {*names, "is_held_out"} or arrays["is_held_out"].shape != (1,):
        raise RunError("is not a sample of reviews", where=path, remedy=_REMEDY)
    tokens, lengths, whole = (arrays[name] for name in names)
    is_sound = all(array.dtype == np.int32 and array.ndim == 1 for array in (tokens, lengths, whole))
    if not is_sound or len(lengths) != len(whole) or (lengths < 0).any() or (whole < lengths).any():
        raise RunError("is not a sample of reviews", where=path, remedy=_REMEDY)
    if int(lengths.sum(dtype=np.int64)) != len(tokens) or not ((tokens >= 0) & (tokens < num_ids)).all():
        raise RunError("has token ids that do not fit the run", where=path, remedy=_REMEDY)
    return Reference(tokens, lengths, whole, bool(arrays["is_held_out"][0]))
