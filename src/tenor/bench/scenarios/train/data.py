"""Prepares the reviews of scenario `train`: generated reviews, or prepared data of the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tenor.bench.peers.datasets import write_fixed
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings

NUM_REVIEWS = 7_000  # enough to contain 30,000 different words


@dataclass(frozen=True)
class ReviewShape:
    """The form of the reviews that a model needs; `fixed` also stores rows of one length, as the course projects do."""

    vocab_size: int
    max_length: int
    fixed: bool = False


def make_data(shape: ReviewShape, folder: Path, own: str) -> Path:
    """Return prepared reviews of a shape.

    Args:
        shape: Vocabulary size and length of the reviews.
        folder: Where the reviews are generated and prepared.
        own: Prepared data of the user, used instead of generated reviews unless the shape is `fixed`; may be empty.
    """
    if own and not shape.fixed:
        return Path(own)
    raw, out = folder / "reviews.jsonl", folder / f"data-{shape.vocab_size}-{shape.max_length}"
    if not raw.exists():
        generate(raw, GenerateSettings(rows=NUM_REVIEWS))
    prepare([raw], out, PrepareSettings(vocab_size=shape.vocab_size, max_length=shape.max_length, test_share=0.02))
    if shape.fixed:
        write_fixed(out, fixed_file(out), shape.max_length)
    return out


def fixed_file(data: Path) -> Path:
    """Return the file with the rows of one length, next to the prepared data."""
    return data.with_name(f"{data.name}.h5")
