"""The reviews that all classifiers share: a folder with one file of JSON lines per split, and the words of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# Lower-case words and separate punctuation, as fastText's documentation recommends
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[!?]|[.,;:()\"]")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with their labels, 0 (negative) or 1 (positive)."""

    texts: list[str]
    labels: list[int]

    def __len__(self) -> int:
        return len(self.labels)


def words(text: str) -> str:
    """Return a text in lower case, with a space between all words and marks.

    >>> words("Not bad<br />at ALL!!")
    'not bad at all ! !'
    """
    return " ".join(_TOKEN.findall(_BREAK.sub(" ", text).lower()))


def write_reviews(file: Path, texts: Iterable[str], labels: Sequence[int]) -> None:
    """Write one JSON object with `text` and `label` per line."""
    with file.open("w", encoding="utf-8") as out:
        for text, label in zip(texts, labels, strict=True):
            out.write(json.dumps({"text": text, "label": int(label)}) + "\n")


def read_reviews(file: Path) -> LabelledTexts:
    """Read what `write_reviews` wrote."""
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return LabelledTexts([row["text"] for row in rows], [row["label"] for row in rows])
