"""Clean the few rows that the compiled tokeniser leaves to Python: named HTML entities, and text that is not in NFC."""

from __future__ import annotations

import re
import unicodedata
from html.entities import html5

MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|&(?:#([0-9]{1,31})|#[xX]([0-9A-Fa-f]{1,30})|([A-Za-z0-9]{1,33}));")


def plain(text: str) -> str:
    """The text with spaces for tags and characters for entities, normalised to NFC."""
    return unicodedata.normalize("NFC", MARKUP.sub(replacement, text))


def replacement(match: re.Match[str]) -> str:
    """What stands for a tag or an entity."""
    decimal, hexadecimal, name = match.groups()
    if name:
        return html5.get(name + ";", match[0])
    if not (decimal or hexadecimal):
        return " "
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]
