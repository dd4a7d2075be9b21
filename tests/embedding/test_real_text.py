"""Neighbours on real text: `TENOR_TEXT8=FILE make soak`, where FILE is the start of text8 (12 MB or more)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tenor

TEXT = os.environ.get("TENOR_TEXT8", "")
NUMBERS = {"zero", "one", "two", "three", "four", "five", "seven", "eight", "nine", "ten", "eleven", "twelve"}
MONTHS = set("february march april may june july august september october november december".split())  # noqa: SIM905


@pytest.mark.soak
@pytest.mark.skipif(not TEXT, reason="TENOR_TEXT8 does not name a text")
@pytest.mark.parametrize("workers", [1, 2])
def test_numbers_and_months_are_neighbours(tmp_path: Path, workers: int) -> None:
    tenor.embed(TEXT, tmp_path / "vectors", tenor.EmbedSettings(workers=workers))
    found = tenor.neighbours(tmp_path / "vectors", ["six", "january"], count=8)
    for word, expected in (("six", NUMBERS), ("january", MONTHS)):
        assert len({name for name, _ in found[word]} & expected) >= 6, found[word]
