"""Where the tokens of a text are: the same tokens as the compiled tokeniser gives, with their places in the text.

It reads one character after another in Python, so it suits the few texts whose words are shown to somebody.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from tenor.preparation.tokeniser.characters import APOSTROPHE, COMPOSE, IGNORED, MARK, SYMBOL, WORD, characters
from tenor.preparation.tokeniser.clean import MARKUP, replacement
from tenor.preparation.tokeniser.lookup import MAX_WORD_BYTES
from tenor.preparation.tokeniser.negation import negated
from tenor.preparation.tokeniser.tokenise import TokeniserSettings


class Letter(NamedTuple):
    """A character after cleaning, and the part of the text that it stands for."""

    character: str
    start: int
    end: int


def token_spans(text: str, settings: TokeniserSettings) -> list[Letter]:
    """The tokens of a text in lower case, each with the part text[start:end] that it stands for."""
    stop = set(settings.stopwords)
    found: list[Letter] = []
    for word in _words(_letters(text), settings):
        kept = _within_limit(word)
        spelled = "".join(letter.character for letter in kept)
        if spelled in stop:
            continue
        found += kept if settings.units == "characters" else [Letter(spelled, word[0].start, word[-1].end)]
    if settings.negation:
        words = negated(letter.character for letter in found)
        return [letter._replace(character=word) for letter, word in zip(found, words, strict=True)]
    return found


def _within_limit(word: list[Letter]) -> list[Letter]:
    """The first letters of a word, as many as the tokeniser keeps."""
    size = 0
    for place, letter in enumerate(word):
        size += len(letter.character.encode())
        if size > MAX_WORD_BYTES:
            return word[:place]
    return word


def _letters(text: str) -> list[Letter]:
    """The characters of the text without markup, in the normal form NFC."""
    text = text.encode("utf-8", "replace").decode()  # lone surrogates become question marks
    found, at = [], 0
    for markup in MARKUP.finditer(text):
        found += [Letter(text[i], i, i + 1) for i in range(at, markup.start())]
        found += [Letter(character, *markup.span()) for character in replacement(markup)]
        at = markup.end()
    found += [Letter(text[i], i, i + 1) for i in range(at, len(text))]
    return _normalised(found)


def _normalised(letters: list[Letter]) -> list[Letter]:
    whole = "".join(letter.character for letter in letters)
    if unicodedata.is_normalized("NFC", whole):
        return letters
    kinds, groups = characters().kinds, list[list[Letter]]()
    for letter in letters:
        if groups and kinds[ord(letter.character)] == COMPOSE:  # may form one character with those before it
            groups[-1].append(letter)
        else:
            groups.append([letter])
    found = [made for group in groups for made in _composed(group)]
    if "".join(letter.character for letter in found) != unicodedata.normalize("NFC", whole):
        return _composed(letters)
    return found


def _composed(group: list[Letter]) -> list[Letter]:
    before = "".join(letter.character for letter in group)
    after = unicodedata.normalize("NFC", before)
    if after == before:
        return group
    return [Letter(character, group[0].start, group[-1].end) for character in after]


def _words(letters: list[Letter], settings: TokeniserSettings) -> Iterator[list[Letter]]:
    """The letters of each token, in lower case."""
    tables = characters(settings.clean, settings.marks)
    word: list[Letter] = []
    waiting: Letter | None = None  # an apostrophe after a letter, which counts if another letter follows
    mark = ""  # the last ! or ?, if nothing came after it
    for letter in letters:
        code = ord(letter.character)
        kind = tables.plain_kinds[code]
        if kind == IGNORED:
            continue
        if kind == WORD:
            word += [waiting._replace(character="'")] if waiting else []
            word.append(letter._replace(character=chr(tables.lower[code])))
            waiting, mark = None, ""
            continue
        if kind == APOSTROPHE and word and not waiting:
            waiting = letter
            continue
        if word:
            yield word
        word, waiting = [], None
        if kind == SYMBOL or (kind == MARK and letter.character != mark):
            yield [letter]
        mark = letter.character if kind == MARK else ""
    if word:
        yield word
