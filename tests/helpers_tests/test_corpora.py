"""The small corpora can be read back, are reproducible, and hold a signal that counting words can find."""

import csv
import gzip
import json
from pathlib import Path

import pytest
from helpers.corpora import BAD, GOOD, WRITERS, make_reviews


def test_the_signal_is_there_and_the_seed_fixes_it() -> None:
    reviews = make_reviews(300, seed=3, negative_share=0.3)
    assert reviews == make_reviews(300, seed=3, negative_share=0.3) != make_reviews(300, seed=4, negative_share=0.3)
    assert len({review.text for review in reviews}) == 300
    for text, rating in reviews:
        words = set(text.split())
        assert (rating < 3) == bool(words & set(BAD)) and (rating > 3) == bool(words & set(GOOD))
    assert 60 < sum(review.rating < 3 for review in reviews) < 120


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_reads_back(kind: str, packed: bool, tmp_path: Path) -> None:
    reviews = make_reviews(20)
    path = WRITERS[kind](tmp_path / f"reviews.{kind}{'.gz' if packed else ''}", reviews)
    lines = (gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).decode().splitlines()
    if kind == "jsonl":
        assert [(row["text"], row["rating"]) for row in map(json.loads, lines)] == reviews
    elif kind == "ft.txt":
        signs = [(text, 1 if rating < 3 else 2) for text, rating in reviews]
        assert [(line[11:], int(line[9])) for line in lines] == signs
    else:
        rows = list(csv.reader(lines, delimiter="," if kind == "csv" else "\t"))
        assert rows[0] == ["text", "rating"] and [(text, int(rating)) for text, rating in rows[1:]] == reviews
