"""A seeded review corpus of any size with known Bayes accuracy, for tests and benchmarks that need no download.

A review is neutral filler around one decisive opinion. A clause of the opposite opinion may come before it, joined by
"but". A reader who understands the review is certain of the opinion. The rating agrees with the opinion except in a
share `noise` of the reviews, so the accuracy of a perfect classifier is 1 − noise, and no classifier exceeds it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.files.compression import COMPRESSIONS
from tenor.corpus.formats.registry import format_of_name
from tenor.corpus.synthetic.phrases import opinions, talk
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import UsageError, naming
from tenor.progress import Shown, shown
from tenor.settings import chosen

if TYPE_CHECKING:
    from tenor.options import GenerateOptions

_DEFAULTS = GenerateSettings()
_BLOCK = 8192  # rows generated at once; another number would give other bytes for the same seed
_WORDS = 60_000
_ZIPF_TABLE = 1 << 20
_SUFFIXES = ("", ".jsonl")  # asking the registry about other suffixes imports the readers, which takes a second
_SENSES = [(positive, strong) for positive in (False, True) for strong in (False, True)]

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GenerateResult:
    """The result of `tenor.generate`.

    Attributes:
        out: Path of the file.
        rows: Number of reviews.
        bytes: Size of the file.
        bayes_accuracy: The best accuracy that a classifier can have on reviews like these.
    """

    out: str
    rows: int
    bytes: int
    bayes_accuracy: float

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values.

        >>> tenor.generate("reviews.jsonl", rows=1000).as_dict()["rows"]  # doctest: +SKIP
        1000
        """
        return asdict(self)


def generate(
    out: str | Path,
    settings: GenerateSettings | None = None,
    progress: Shown = None,
    **options: Unpack[GenerateOptions],
) -> GenerateResult:
    """Write generated reviews as JSON lines with the keys `reviewText` and `overall`.

    The file appears under its name only when it is complete. The same settings give the same bytes.

    Args:
        out: The file to write; missing folders are created.
        settings: How many reviews, and what they are like.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The number of reviews, the size of the file, and the Bayes accuracy.

    Raises:
        UsageError: `out` is a folder, or its suffix is that of another format.

    >>> tenor.generate("reviews.jsonl", rows=1000).bayes_accuracy  # doctest: +SKIP
    0.95
    """
    settings, progress = chosen(GenerateSettings, settings, options), shown(progress)
    path, size = Path(out), 0
    if path.is_dir():
        raise UsageError("is a folder", where=path, remedy="name a file, such as reviews.jsonl")
    suffix = path.suffix.lower()
    if suffix in COMPRESSIONS or (suffix not in _SUFFIXES and format_of_name(f"r{suffix}") not in (None, "json")):
        what = f"generate writes plain JSON lines, not {path.suffix}"
        raise UsageError(what, where=path, remedy="name a file such as reviews.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    progress.start("generating", settings.rows, "rows")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with naming(path), temporary.open("xb") as file:  # x: never writes through a link of that name
            for rows, block in blocks(settings):
                size += file.write(block)
                progress.advance(rows)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
        progress.finish()
    return GenerateResult(str(path), settings.rows, size, 1.0 - settings.noise)


def blocks(settings: GenerateSettings) -> Iterator[tuple[int, memoryview]]:
    """The corpus as blocks of (rows, bytes). A block depends only on the settings and its number."""
    words = _Words()
    for number, first in enumerate(range(0, settings.rows, _BLOCK)):
        rows = min(_BLOCK, settings.rows - first)
        rng = np.random.default_rng([settings.seed, number])
        ids, _ = _block(words, settings, rows, rng)
        yield rows, memoryview(words.phrases.take(pa.array(ids)).buffers()[2])


class _Words:
    """Every phrase that reviews are made of, group by group, and where each group starts."""

    def __init__(self) -> None:
        heads = ['{"reviewText": "']
        tails = [f'", "overall": {stars}.0}}\n' for stars in range(1, 6)]
        said = [opinions(positive, strong) for positive, strong in _SENSES]
        filler = [word + " " for word in talk(_WORDS)]
        groups = [heads, tails, [", but "], [". "], filler, *said]
        self.starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
        self.phrases = pa.array([phrase for group in groups for phrase in group], pa.large_string())
        weights = 1.0 / np.arange(2.7, _WORDS + 2.7)
        steps = np.cumsum(weights / weights.sum())
        self.zipf = np.searchsorted(steps, (np.arange(_ZIPF_TABLE) + 0.5) / _ZIPF_TABLE) + self.starts[4]

    def opinion(self, positive: Ids, strong: Ids, rng: np.random.Generator) -> Ids:
        """The id of a random clause of the given opinion and strength, for each row."""
        group = 5 + 2 * positive + strong
        sizes = self.starts[group + 1] - self.starts[group]
        return np.asarray(self.starts[group] + (rng.random(len(group)) * sizes).astype(np.int64))


def _block(words: _Words, settings: GenerateSettings, rows: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """(phrase ids, number of phrases per row) of one block: new rows, and duplicates of them."""
    fresh = max(1, rows - rng.binomial(rows, settings.duplicates))
    ids, lengths = _fresh(words, settings, fresh, rng)
    if fresh == rows:
        return ids, lengths
    chosen = rng.permutation(np.concatenate([np.arange(fresh), rng.integers(0, fresh, rows - fresh)]))
    starts = np.cumsum(lengths) - lengths
    picked = lengths[chosen]
    within = np.arange(picked.sum()) - np.repeat(np.cumsum(picked) - picked, picked)
    return ids[np.repeat(starts[chosen], picked) + within], picked


def _fresh(words: _Words, settings: GenerateSettings, rows: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """(phrase ids, number of phrases per row) of new rows."""
    positive = (rng.random(rows) >= settings.negative_share).astype(np.int64)
    strong = rng.integers(0, 2, rows)
    shown = np.where(rng.random(rows) < settings.noise, 1 - positive, positive)
    stars = np.where(shown == 1, 4 + strong, 2 - strong)
    before = 1 + rng.poisson(rng.gamma(2.0, settings.length / 4, rows))
    after = rng.poisson(rng.gamma(2.0, settings.length / 4, rows))
    contrast = rng.random(rows) < settings.contrast
    lengths = before + after + 4 + 2 * contrast  # head, opinion, full stop, tail, and the clause before "but"
    ids = words.zipf[rng.integers(0, _ZIPF_TABLE, lengths.sum())]
    ends = np.cumsum(lengths)
    at = ends - lengths
    ids[at] = words.starts[0]
    at = at + 1 + before
    rival = words.opinion(1 - positive, rng.integers(0, 2, rows), rng)
    ids[at[contrast]] = rival[contrast]
    ids[at[contrast] + 1] = words.starts[2]
    at = at + 2 * contrast
    ids[at] = words.opinion(positive, strong, rng)
    ids[at + 1] = words.starts[3]
    ids[ends - 1] = words.starts[1] + stars - 1
    return ids, lengths
