"""The written cases of `cases.toml`, read and checked.

The three types of test follow Ribeiro et al. 2020, "Beyond Accuracy: Behavioral Testing of NLP Models with CheckList".
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tenor.corpus.labels import BINARY
from tenor.errors import CorpusError

FILE = "cases.toml"
MINIMUM, INVARIANCE, DIRECTION = TYPES = ("minimum", "invariance", "direction")
UP, DOWN, SAME = "up", "down", "same"
_EXPECTED = {MINIMUM: BINARY, DIRECTION: (UP, DOWN)}


@dataclass(frozen=True)
class Case:
    """One written case.

    Attributes:
        kind: What the case is about, such as `negation`.
        type: `minimum` (the label must be `expected`), `invariance` (the label must stay the same), or `direction`
            (the probability of positive must go `up` or `down`).
        expected: `positive` or `negative`; `same`; `up` or `down`.
        texts: One text for `minimum`, otherwise the text and the changed text.
        is_hard: Whether the kind needs more than the words of the text, such as sarcasm.
    """

    kind: str
    type: str
    expected: str
    texts: tuple[str, ...]
    is_hard: bool


def read_cases() -> list[Case]:
    """Return the cases that come with Tenor, in the order of their file."""
    return parse_cases(resources.files(__package__).joinpath(FILE).read_text("utf-8"))


def parse_cases(toml: str) -> list[Case]:
    """Return the cases of a text in the form of `cases.toml`.

    Raises:
        CorpusError: A case does not have the form of its type, or stands twice in its kind.
    """
    return [case for kind, table in tomllib.loads(toml).items() for case in _kind(kind, table)]


def _kind(kind: str, table: Mapping[str, Any]) -> list[Case]:
    if unknown := [name for name in table if name not in (*TYPES, "hard")]:
        raise _wrong(kind, f"has the unknown entry {unknown[0]!r}")
    is_hard = table.get("hard", False) is True
    found = [_case(kind, name, row, is_hard) for name in TYPES for row in table.get(name, [])]
    if len({(case.type, case.texts) for case in found}) < len(found):
        raise _wrong(kind, "has a case twice")
    return found


def _case(kind: str, name: str, row: Sequence[Any], is_hard: bool) -> Case:
    words = list(row)
    if not all(isinstance(word, str) and word.strip() for word in words):
        raise _wrong(kind, f"has the {name} case {words!r:.80}, which is not a list of texts")
    expected = SAME if name == INVARIANCE else words.pop(0) if words else ""
    if expected not in _EXPECTED.get(name, (SAME,)) or len(words) != (1 if name == MINIMUM else 2):
        raise _wrong(kind, f"has the {name} case {row!r:.80}, which does not have the form of its type")
    return Case(kind, name, expected, tuple(words), is_hard)


def _wrong(kind: str, what: str) -> CorpusError:
    return CorpusError(f"[{kind}] {what}", where=FILE, remedy="correct the case; the head of the file shows the forms")
