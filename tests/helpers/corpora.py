"""Small review corpora with a learnable signal, in every raw format; a name that ends in `.gz` is compressed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

GOOD = ["superb", "wonderful", "delightful", "excellent", "brilliant", "charming", "moving", "perfect"]
BAD = ["dreadful", "boring", "awful", "clumsy", "tedious", "horrible", "lifeless", "terrible"]
PLAIN = """
the film story actor scene camera music plot ending dialogue city night director hour people this that with from about
there were have some very just again while before after between
""".split()  # noqa: SIM905 - thirty quoted words would be less readable


class Review(NamedTuple):
    """One raw row: a text and a rating from 1 to 5 stars."""

    text: str
    rating: int


def make_reviews(rows: int, seed: int = 0, *, negative_share: float = 0.5, words: int = 20) -> list[Review]:
    """Make distinct reviews of plain words, with three bad words for 1 or 2 stars and three good ones for 4 or 5."""
    rng = random.Random(seed)
    reviews = []
    for number in range(rows):
        negative = rng.random() < negative_share
        telling = rng.choices(BAD if negative else GOOD, k=3)
        text = [*rng.choices(PLAIN, k=max(words - 4, 1)), *telling]
        rng.shuffle(text)
        reviews.append(Review(" ".join([*text, f"n{number}"]), rng.choice((1, 2) if negative else (4, 5))))
    return reviews


def write_json_lines(path: Path, reviews: Sequence[Review], text: str = "text", label: str = "rating") -> Path:
    rows = (json.dumps({text: review.text, label: review.rating}, ensure_ascii=False) for review in reviews)
    return write_bytes(path, "".join(f"{row}\n" for row in rows).encode())


def write_csv(
    path: Path, reviews: Sequence[Review], text: str = "text", label: str = "rating", delimiter: str = ","
) -> Path:
    out = io.StringIO()
    table = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    table.writerow([text, label])
    table.writerows(reviews)
    return write_bytes(path, out.getvalue().encode())


def write_tsv(path: Path, reviews: Sequence[Review], text: str = "text", label: str = "rating") -> Path:
    return write_csv(path, reviews, text, label, delimiter="\t")


def write_fasttext(path: Path, reviews: Sequence[Review]) -> Path:
    """Write `__label__1` for 1 and 2 stars and `__label__2` for 4 and 5, like the public review data sets."""
    rows = (f"__label__{1 if review.rating < 3 else 2} {review.text}\n" for review in reviews)
    return write_bytes(path, "".join(rows).encode())


def write_bytes(path: Path, data: bytes) -> Path:
    """Write `data` to `path`, compressed if the name ends in `.gz`; the same data always gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


WRITERS = {"jsonl": write_json_lines, "csv": write_csv, "tsv": write_tsv, "ft.txt": write_fasttext}
