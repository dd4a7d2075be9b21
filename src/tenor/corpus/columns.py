"""Which columns hold the text, the rating and the title: known schemas are recognised, options override them."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass

from tenor.errors import CorpusError, UsageError

AUTO = "auto"

# (text, rating) of McAuley 2014/2018, AWS, McAuley 2023, and names that many other files use.
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
    """The columns to read; the title is put before the text."""

    text: str
    rating: str | None  # None: ratings are not read
    title: str | None = None


@dataclass(frozen=True)
class Wanted:
    """How the caller wants the input to be read; None and `auto` mean that it is recognised."""

    text: str | None = None
    rating: str | None = None
    title: str | None = None
    format: str = AUTO
    delimiter: str = AUTO  # or a single character, or the word `tab`
    encoding: str = "utf-8"
    unlabelled: bool = False  # keep rows and files without a rating

    def __post_init__(self) -> None:
        if self.delimiter != AUTO:
            object.__setattr__(self, "delimiter", _delimiter(self.delimiter))
        object.__setattr__(self, "encoding", _encoding(self.encoding))


def _delimiter(text: str) -> str:
    """The delimiter as one character; UsageError if it cannot separate columns."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n\0':
        remedy = "give one ASCII character such as ';' or '|', the word tab, or auto"
        raise UsageError(f"--delimiter {text!r} cannot separate columns", remedy=remedy)
    return delimiter


def _encoding(name: str) -> str:
    """The encoding as Python spells it; UsageError if it is not a text encoding."""
    try:
        known = "utf-8" if codecs.lookup(name).name == "utf-8-sig" else codecs.lookup(name).name
        is_text = "a\n".encode(known).decode(known) == "a\n"
    except (LookupError, ValueError):
        is_text = False
    if not is_text:
        remedy = "give an encoding that Python knows, such as utf-8, cp1252, latin-1 or utf-16"
        raise UsageError(f"--encoding {name!r} is not a text encoding", remedy=remedy)
    return known


@dataclass(frozen=True)
class ColumnChooser:
    """Chooses the columns to read among the columns of a file.

    Attributes:
        wanted: The columns that the caller has named.
        where: The file, for messages.
        with_rating: Whether a rating is needed; prediction reads texts alone.
        only_unrated: Whether a file that has a column of ratings is refused if that column cannot be read.
    """

    wanted: Wanted
    where: str
    with_rating: bool = True
    only_unrated: bool = False

    def __call__(self, names: Iterable[str]) -> Columns:
        """The columns to read; CorpusError if a named one is missing or none is known."""
        names = list(names)
        needs_rating = self.with_rating or (self.only_unrated and _has_rating(names, self.wanted))
        choose = _choose_both if needs_rating else _choose_text
        return choose(names, self.wanted, self.where)

    def named(self) -> list[str]:
        """The columns that the caller has named."""
        return [name for name in (self.wanted.text, self.wanted.rating, self.wanted.title) if name]


def _has_rating(names: list[str], wanted: Wanted) -> bool:
    """Whether a column is the named rating or, if none is named, has a name that known files give to ratings."""
    return any(name in names for name in ([wanted.rating] if wanted.rating else [rating for _, rating in KNOWN]))


def _choose_both(names: list[str], wanted: Wanted, where: str) -> Columns:
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


def _choose_text(names: list[str], wanted: Wanted, where: str) -> Columns:
    text = wanted.text
    if text is None:
        text = next((name for name, _ in KNOWN if name in names), None)
    if text is None or text not in names:
        what = "no known text column" if text is None else f"no column {text!r}"
        raise CorpusError(what, where=where, remedy=f"--text-column can be {_listed(names)}")
    if wanted.title is not None and wanted.title not in names:
        what = f"no column {wanted.title!r}"
        raise CorpusError(what, where=where, remedy=f"--title-column can be {_listed(names)}")
    for name in (text, wanted.title):
        if name is not None:
            _check_once(name, names, where)
    return Columns(text, None, wanted.title)


def _check_once(name: str, names: list[str], where: str) -> None:
    if names.count(name) > 1:
        remedy = "rename all but one of them, or choose another column"
        raise CorpusError(f"{names.count(name)} columns are called {name!r}", where=where, remedy=remedy)


def _listed(names: list[str]) -> str:
    shown = [name if len(name) <= 40 else name[:39] + "…" for name in names[:20]]
    return ", ".join(shown) + (", …" if len(names) > 20 else "") if names else "(none)"
