"""Which fields hold the text, the rating and the title: known schemas are recognised, options override."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tenor.errors import CorpusError

# (text, rating) of McAuley 2014/2018, McAuley 2023, AWS, and the plain names many files use.
KNOWN = (
    ("reviewText", "overall"),
    ("review_body", "star_rating"),
    ("text", "rating"),
    ("text", "label"),
    ("review", "sentiment"),
    ("text", "sentiment"),
    ("review", "rating"),
    ("review", "label"),
    ("text", "stars"),
)


@dataclass(frozen=True)
class Columns:
    text: str
    rating: str | None  # None: the rating is not wanted
    title: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What the caller asked for; None leaves it to be recognised."""

    text: str | None = None
    rating: str | None = None
    title: str | None = None


def choose(present: Iterable[str], wanted: Wanted, where: str) -> Columns:
    """The columns to read, from those that are there."""
    names = list(present)
    text, rating = wanted.text, wanted.rating
    for option, name in (("--text-column", text), ("--label-column", rating), ("--title-column", wanted.title)):
        if name is not None and name not in names:
            raise CorpusError(f"no column {name!r}", where=where, remedy=f"{option} can be {_listed(names)}")
    if text is None or rating is None:
        known = [(t, r) for t, r in KNOWN if (text or t) in names and (rating or r) in names]
        if known:
            text, rating = text or known[0][0], rating or known[0][1]
    if text is None or rating is None:
        raise CorpusError(
            f"no known text and label columns among {_listed(names)}",
            where=where,
            remedy="name them with --text-column and --label-column",
        )
    for name in (text, rating, wanted.title):
        if name is not None:
            _check_once(name, names, where)
    return Columns(text, rating, wanted.title)


def choose_text(present: Iterable[str], text: str | None, where: str) -> str:
    """The text column alone, for input without labels."""
    names = list(present)
    if text is None:
        text = next((name for name, _ in KNOWN if name in names), None)
    if text is None or text not in names:
        what = "no known text column" if text is None else f"no column {text!r}"
        raise CorpusError(what, where=where, remedy=f"--text-column can be {_listed(names)}")
    _check_once(text, names, where)
    return text


def _check_once(name: str, names: list[str], where: str) -> None:
    if names.count(name) > 1:
        remedy = "rename all but one, or choose another"
        raise CorpusError(f"{names.count(name)} columns are called {name!r}", where=where, remedy=remedy)


def _listed(names: list[str]) -> str:
    shown = [name if len(name) <= 40 else name[:39] + "…" for name in names[:20]]
    return ", ".join(shown) + (", …" if len(names) > 20 else "") if names else "(none)"
