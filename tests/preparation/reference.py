"""A slow and simple reference of the tokeniser: Python strings, one character after another."""

from __future__ import annotations

import html.entities
import json
import re
import unicodedata
from importlib import resources

_PINNED = json.loads(resources.files("tenor.preparation.tokeniser").joinpath("unicode.json").read_text("utf-8"))


def _members(name: str) -> set[int]:
    return {code for first, last in _PINNED[name] for code in range(first, last + 1)}


_LETTERS, _DIGITS = _members("letters"), _members("digits")
_SYMBOLS, _IGNORED = _members("symbols"), _members("ignored")
_LOWER = {code: code + delta for first, last, step, delta in _PINNED["lower"] for code in range(first, last + 1, step)}


def reference_tokens(text: str, clean: str = "words", marks: bool = True) -> list[str]:
    text = re.sub(r"</?[A-Za-z][^<>]*>|&#?[A-Za-z0-9]{1,33};", _markup, text)
    text = unicodedata.normalize("NFC", text)
    text = "".join(c for c in text if ord(c) not in _IGNORED)
    letters = _LETTERS if clean == "letters" else _LETTERS | _DIGITS
    tokens, word, last = [], "", ""
    for place, c in enumerate(text):
        before, after = text[place - 1] if place else " ", text[place + 1] if place + 1 < len(text) else " "
        if ord(c) in letters:
            word += chr(_LOWER.get(ord(c), ord(c)))
        elif clean == "words" and c in "'’" and ord(before) in letters and ord(after) in letters:
            word += "'"
        else:
            tokens, word = tokens + ([_cut(word)] if word else []), ""
            symbol = clean == "words" and ord(c) in _SYMBOLS
            if symbol or (clean == "words" and marks and c in "!?" and c != last):
                tokens.append(c)
        last = c
    return tokens + ([_cut(word)] if word else [])


def _markup(match: re.Match[str]) -> str:
    found = match[0]
    if found.startswith("<"):
        return " "
    if not found.startswith("&#"):
        return html.entities.html5.get(found[1:], found)
    number = found[2:-1]
    try:
        code = int(number[1:], 16) if number[:1] in "xX" else int(number)
    except ValueError:
        return found
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else found


def _cut(word: str) -> str:
    """As many characters as fit 64 bytes."""
    return word.encode()[:64].decode("utf-8", "ignore")


_LIST = """
not no never nothing nobody none neither nor nowhere without hardly barely scarcely cannot
don't doesn't didn't isn't wasn't aren't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't ain't
dont doesnt didnt isnt wasnt arent werent wont wouldnt cant couldnt shouldnt havent hasnt hadnt aint
"""
_NEGATORS = set(_LIST.split())


def reference_negated(tokens: list[str]) -> list[str]:
    """The tokens, with ¬ before each in the scope of the last negator, unless something between them ends its scope."""
    found = []
    for place, token in enumerate(tokens):
        start = next((i for i in reversed(range(place)) if tokens[i] in _NEGATORS), place)
        scope = 5 if tokens[start] in {"nothing", "nobody", "none", "neither", "no"} else 3
        before = start < place <= start + scope
        ends = {"but", "however", "although", "though", "!", "?"} & set(tokens[start + 1 : place + 1])
        only = scope == 3 and tokens[start + 1 : start + 2] == ["only"]
        is_plain = token in _NEGATORS or not before or ends or only or len(token.encode()) > 62
        found.append(token if is_plain else "¬" + token)
    return found
