"""How a language negates: its negators, how to recognise kinds of words, and patterns of short sentences."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

GROUP = re.compile(r"\(([^()]*)\)")
OPINIONS = ("A", "P", "N", "V", "F", "W")  # kinds of words that a pattern turns around or leaves as they are
TOPIC = "T"  # a noun without opinion

Choice = tuple[tuple[str, ...], ...]  # alternatives, each a sequence of words
Pattern = tuple[Choice, ...]  # one choice after another


@dataclass(frozen=True)
class Grammar:
    """What is needed to write short sentences with and without negation.

    Attributes:
        negators: Words that turn around what follows.
        adverb: How words end that are of no kind.
        participle: How participles end.
        signs: For each kind of word, words that often come before it.
        shares: For each kind of word, the least share of its places where one of its signs comes before it.
        flip: Patterns by kind of word that turn its opinion around.
        keep: Patterns by kind of word that leave its opinion as it is, although they have a negator.
        plain: Patterns by kind of word without a negator.
        before: Patterns that may come before a sentence.
        after: Patterns that may come after a sentence.
    """

    negators: tuple[str, ...]
    adverb: str
    participle: str
    signs: Mapping[str, tuple[str, ...]]
    shares: Mapping[str, float]
    flip: Mapping[str, tuple[Pattern, ...]]
    keep: Mapping[str, tuple[Pattern, ...]]
    plain: Mapping[str, tuple[Pattern, ...]]
    before: tuple[Pattern, ...]
    after: tuple[Pattern, ...]


def parse(text: str) -> Pattern:
    """A pattern from its text.

    >>> parse("not (very|) A")
    ((('not',),), (('very',), ()), (('A',),))
    """
    found: list[Choice] = []
    for place, piece in enumerate(GROUP.split(text)):
        if place % 2:
            found.append(tuple(tuple(part.split()) for part in piece.split("|")))
        else:
            found += [((word,),) for word in piece.split()]
    return tuple(found)


@functools.cache
def grammar(language: str) -> Grammar:
    """The grammar in the file `<language>.toml` of this folder."""
    values = tomllib.loads(resources.files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))
    kinds, around = values["kinds"], values["around"]
    return Grammar(
        negators=tuple(values["negators"].split()),
        adverb=values["adverb"],
        participle=values["participle"],
        signs={kind: tuple(found["after"].split()) for kind, found in kinds.items()},
        shares={kind: float(found["share"]) for kind, found in kinds.items()},
        flip=_by_kind(values["flip"]),
        keep=_by_kind(values["keep"]),
        plain=_by_kind(values["plain"]),
        before=tuple(map(parse, around["before"])),
        after=tuple(map(parse, around["after"])),
    )


def _by_kind(texts: Mapping[str, list[str]]) -> dict[str, tuple[Pattern, ...]]:
    return {kind: tuple(map(parse, found)) for kind, found in texts.items()}
