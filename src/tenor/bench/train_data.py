"""The reviews that scenario `train` runs on: generated, or prepared data of the caller's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tenor.bench.peers.datasets import write_fixed
from tenor.corpus.generation import GenerateSettings
from tenor.corpus.synthetic import generate
from tenor.preparation.job import prepare
from tenor.preparation.settings import PrepareSettings

NUM_REVIEWS = 7_000  # enough for 30,000 different words


@dataclass(frozen=True)
class Shape:
    """What a model wants of its reviews; `fixed` also stores them as rows of one length, as the course projects do."""

    vocab_size: int
    max_length: int
    fixed: bool = False


def make_data(shape: Shape, folder: Path, own: str) -> Path:
    """Prepared reviews of that shape; `own` takes the place of generated ones where no shape is prescribed."""
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
    """Where the rows of one length lie, beside the prepared data."""
    return data.with_name(f"{data.name}.h5")
