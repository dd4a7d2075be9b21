"""All formats that Tenor reads. To add a format, write its file and add one line to `FORMATS`.

An installed package can add a format too, with an entry point in the group `tenor.formats`. Worker processes find such
formats in the same way. A format's module is imported on first use, so that `tenor --help` stays fast.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

from tenor.corpus.columns import AUTO
from tenor.corpus.files.compression import COMPRESSIONS, suffixes_of
from tenor.errors import UsageError

if TYPE_CHECKING:
    from tenor.corpus.formats.base import Format

FORMATS = {  # value of --format: where the format is; in the order in which contents are recognised
    "json": "tenor.corpus.formats.json_lines:JSON",
    "csv": "tenor.corpus.formats.delimited:CSV",
    "tsv": "tenor.corpus.formats.delimited:TSV",
    "fasttext": "tenor.corpus.formats.fasttext:FASTTEXT",
    "parquet": "tenor.corpus.formats.parquet:PARQUET",
    "text": "tenor.corpus.formats.plain_text:TEXT",
}
TEXT = "text"  # the format of a file that no format recognises
DELIMITED = "csv"  # the format of such a file if the caller names a delimiter
ENTRY_POINTS = "tenor.formats"
_BOM = b"\xef\xbb\xbf"


class FormatChoices(tuple[str, ...]):
    """The values of `--format`. Lists those of Tenor, and contains those of installed packages as well.

    Listing the latter would search all installed packages, which takes too long for `tenor --help`.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in _installed()


LABELLED_CHOICES = FormatChoices((AUTO, *(name for name in FORMATS if name != TEXT)))
TEXT_CHOICES = FormatChoices((AUTO, *FORMATS))


@functools.cache
def _installed() -> dict[str, str]:
    """The formats of installed packages: name → module:attribute."""
    from importlib.metadata import entry_points

    found = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    for name in found.keys() & FORMATS.keys():
        remedy = "rename the entry point, or uninstall its package"
        raise UsageError(f"the entry point {name!r} of {found[name]} has the name of a format of Tenor", remedy=remedy)
    return found


@functools.cache
def format_named(name: str) -> Format:
    """The format with this name; UsageError if there is none or if it cannot be imported."""
    from tenor.corpus.formats.base import Format

    place = FORMATS.get(name) or _installed().get(name)
    if place is None:
        raise UsageError(f"--format does not know {name!r}", remedy=f"choose one of {', '.join(TEXT_CHOICES)}")
    module, _, attribute = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        remedy = "fix or uninstall the package that adds this format"
        raise UsageError(f"the format {name!r} cannot be loaded: {error}", remedy=remedy) from error
    if not isinstance(found, Format) or found.name != name:
        raise UsageError(f"{place} is not a format called {name!r}", remedy="register a Format object by its name")
    return found


def all_formats() -> list[Format]:
    """Every format, those of Tenor first."""
    return [format_named(name) for name in (*FORMATS, *_installed())]


def binary_format(start: bytes) -> Format | None:
    """The binary format whose files begin like this."""
    found = (each for each in all_formats() if each.is_binary and each.magic and start.startswith(each.magic))
    return next(found, None)


def recognise(name: str, start: bytes) -> str | None:
    """The name of the format of a text file, from its content and its file name; None if neither says.

    Args:
        name: The file name.
        start: The first bytes of the decompressed content, as UTF-8.
    """
    start = start.removeprefix(_BOM).lstrip(b" \t\r\n")
    for each in all_formats():
        if each.magic and not each.is_binary and start.startswith(each.magic):
            return each.name
    if (by_name := format_of_name(name)) is not None:
        return by_name
    return next((each.name for each in all_formats() if each.looks_like(start)), None)


def format_of_name(name: str) -> str | None:
    """The name of the format that the suffixes of a file name stand for; suffixes of compressions are skipped."""
    suffixes = suffixes_of(name)
    for each in all_formats():
        if suffixes and suffixes[-1] in each.suffixes:
            return each.name
    for each in all_formats():
        if len(suffixes) > 1 and suffixes[-2] in each.inner_suffixes:
            return each.name
    return None


def has_known_suffix(name: str) -> bool:
    """Whether a file name has the suffix of a known format."""
    return format_of_name(name) is not None


def known_formats() -> str:
    """The formats with labels and the compressions, for messages."""
    titles = ", ".join(each.title for each in all_formats() if each.has_labels)
    return f"{titles}; plain or compressed as {', '.join(dict.fromkeys(COMPRESSIONS.values()))}"
