"""Small raw review files in every input format, the same bytes of text on every machine."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

GOOD = "superb wonderful delightful excellent brilliant charming moving perfect".split()  # noqa: SIM905
BAD = "dreadful boring awful clumsy tedious horrible lifeless terrible".split()  # noqa: SIM905
PLAIN = """
the film story actor scene camera music plot ending dialogue city night director hour people this that with from about
there were have some very just again while before after between not
""".split()  # noqa: SIM905
# What tokenisers stumble over: marks, tags, entities, addresses, digits, accents, other scripts, quotes and line breaks
ODD = (
    "I don't think so!!",
    "10/10, would watch again?",
    "<br />two<br />lines",
    "salt &amp; pepper &lt;3",
    "see http://example.com/a?b=c&d=e now",
    "CAFÉ naïve Cafe\u0301 İYİ ΟΔΟΣ straße",
    "映画は良い \U0001f600 \U0001f44d\U0001f3fd",
    'she said "never", then left',
    "line one\nline two",
    "tab\there; semicolon, comma",
    "it’s a ‘quote’ — dash… end",
    "a" * 70,
)
LATIN = ("I don't think so!!", "café naïve", 'she said "never"; then left', "it’s 5 € – dear")


class Review(NamedTuple):
    """One raw row."""

    title: str
    text: str
    rating: int


def make_reviews(rows: int, seed: int, odd: Sequence[str] = ODD) -> list[Review]:
    """Reviews of 1 to 5 stars; about a tenth repeats an earlier text, some with another rating."""
    rng = random.Random(seed)
    reviews: list[Review] = []
    for number in range(rows):
        rating = rng.choice((1, 1, 2, 3, 4, 5, 5))
        if reviews and rng.random() < 0.1:
            reviews.append(rng.choice(reviews)._replace(rating=rating))
            continue
        telling = rng.choices(BAD if rating < 3 else GOOD if rating > 3 else PLAIN, k=3)
        words = [*rng.choices(PLAIN, k=rng.randrange(4, 24)), *telling, f"n{number}"]
        rng.shuffle(words)
        if rng.random() < 0.3:
            words.insert(rng.randrange(len(words)), rng.choice(odd))
        reviews.append(Review(" ".join(rng.choices(GOOD + BAD + PLAIN, k=2)).title(), " ".join(words), rating))
    return reviews


def write_inputs(folder: Path) -> None:
    """Write every file that `cases.PREPARE` names."""
    reviews = make_reviews(300, seed=1)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _files(reviews).items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    table = pa.table({name: [getattr(review, name) for review in reviews] for name in Review._fields})
    pq.write_table(table, folder / "reviews.parquet", row_group_size=100)
    with zipfile.ZipFile(folder / "reviews.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", _csv(reviews[:150]))
        archive.writestr("b.jsonl", _json_lines(reviews[150:]))


def _files(reviews: list[Review]) -> dict[str, bytes]:
    latin = make_reviews(200, seed=2, odd=LATIN)
    one_line = [review._replace(text=" ".join(review.text.split())) for review in reviews]
    lines = _json_lines(reviews)
    return {
        "reviews.jsonl": lines,
        "reviews.jsonl.gz": gzip.compress(lines, mtime=0),
        "reviews.jsonl.bz2": bz2.compress(lines),
        "reviews.json": json.dumps([review._asdict() for review in reviews]).encode(),
        "reviews.csv": _csv(reviews),
        "latin.csv": _csv(latin, delimiter=";").decode().encode("cp1252"),
        "reviews.tsv": _csv(one_line, delimiter="\t"),
        "reviews.ft.txt": "".join(
            f"__label__{1 if review.rating < 3 else 2} {review.text}\n" for review in one_line if review.rating != 3
        ).encode(),
        "broken.jsonl": _with_broken_lines(lines),
        "words.csv": _csv(reviews, rating=lambda review: ("neg", "neg", "so-so", "pos", "pos")[review.rating - 1]),
        "many/a.jsonl": _json_lines(reviews[:100]),
        "many/b.csv": _csv(reviews[100:200]),
        "many/c.jsonl.gz": gzip.compress(_json_lines(reviews[200:]), mtime=0),
        "training.jsonl": _json_lines(make_reviews(400, seed=3)),
        "stopwords.txt": b"The film\nSTORY\nnot\n",
        "texts.txt": "".join(f"{review.text}\n" for review in one_line[:40]).encode(),
        "vectors.txt": _vectors(8).encode(),
    }


def _json_lines(reviews: Sequence[Review]) -> bytes:
    return "".join(json.dumps(review._asdict(), ensure_ascii=False) + "\n" for review in reviews).encode()


def _csv(
    reviews: Sequence[Review], delimiter: str = ",", rating: Callable[[Review], object] = lambda review: review.rating
) -> bytes:
    out = io.StringIO()
    table = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    table.writerow(Review._fields)
    table.writerows((review.title, review.text, rating(review)) for review in reviews)
    return out.getvalue().encode()


def _with_broken_lines(lines: bytes) -> bytes:
    """Every 20th line is one that must be rejected or dropped."""
    broken = (
        b'{"text": "no end',
        b'{"text": "a word for a rating", "rating": "nice"}',
        b'{"text": null, "rating": 5}',
        b'{"rating": 5}',
        b"not json",
        b'{"text": "bad \xff byte", "rating": 1}',
        b'{"text": " ... ", "rating": 1}',
    )
    rows = lines.splitlines()
    for number in range(0, len(rows), 20):
        rows[number] = broken[number // 20 % len(broken)]
    return b"\n".join(rows) + b"\n"


def _vectors(width: int) -> str:
    """Word vectors in word2vec's text format for some of the words."""
    rng = random.Random(4)
    words = [*GOOD, *BAD, *PLAIN[:10]]
    rows = (f"{word} {' '.join(f'{rng.uniform(-0.5, 0.5):.4f}' for _ in range(width))}\n" for word in words)
    return f"{len(words)} {width}\n" + "".join(rows)
