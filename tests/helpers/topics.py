"""Texts in which the words of a topic stand in the same places, so that their vectors should become neighbours."""

from __future__ import annotations

import random
from pathlib import Path

TOPICS = {
    "number": ["one", "two", "three", "four", "five", "six", "seven", "eight"],
    "month": ["january", "march", "april", "june", "july", "august", "october", "december"],
    "colour": ["red", "green", "blue", "white", "black", "yellow", "brown", "pink"],
}
FRAMES = {
    "number": "there were {} apples in the basket today",
    "month": "it happened in {} during the long festival",
    "colour": "she painted the old door {} again yesterday",
}
LINE_WORDS = 8
EMBED_SETTINGS = {"dim": 16, "min_count": 2, "sample": 0.0, "lr": 0.05}  # that suit such texts
EMBED_OPTIONS = ("--dim", "16", "--min-count", "2", "--sample", "0", "--lr", "0.05")


def write_topics(file: Path, num_lines: int = 24_000) -> Path:
    rng = random.Random(0)
    topics = [rng.choice(list(TOPICS)) for _ in range(num_lines)]
    file.write_text("\n".join(FRAMES[topic].format(rng.choice(TOPICS[topic])) for topic in topics))
    return file
