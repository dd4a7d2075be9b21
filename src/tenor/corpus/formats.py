"""What a file is: by its name, and by its first bytes where the name does not say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from tenor.corpus.remote import is_http
from tenor.errors import CorpusError

COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".zst": "zst", ".zstd": "zst"}
FORMATS = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ft": "fasttext",
}
_MAGIC = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zst"))
KNOWN = "JSON lines, CSV, TSV, fastText lines, Parquet; plain or gz, bz2, zst"


@dataclass(frozen=True)
class Kind:
    format: str  # json, csv, tsv, fasttext, parquet, text
    compression: str  # "", gz, bz2, zst


def compression_of(name: str, start: bytes) -> str:
    """How a file is packed. Its first bytes decide: names lie more often."""
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return kind
    suffix = "".join(_endings(name)[-1:])
    if suffix in COMPRESSIONS and start:
        raise CorpusError(f"is not {COMPRESSIONS[suffix]} data, whatever its name says", where=name)
    return ""


def _endings(name: str) -> list[str]:
    """`.jsonl`, `.gz`; those of a web address end before its query."""
    path = urlsplit(name).path if is_http(name) else name
    return [suffix.lower() for suffix in PurePosixPath(path).suffixes]


def format_of(name: str, start: bytes) -> str | None:
    """The format of a file whose unpacked content begins with `start`; None when neither name nor content tells."""
    if start.startswith(b"PAR1"):
        return "parquet"
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if start.startswith(b"__label__"):
        return "fasttext"
    return format_of_name(name) or ("json" if _is_object(start.split(b"\n", 1)[0]) else None)


def format_of_name(name: str) -> str | None:
    """The format that a file's endings tell, packed or not; `.ft` may have one more behind it, as in `.ft.txt`."""
    suffixes = [ending for ending in _endings(name) if ending not in COMPRESSIONS]
    if suffixes[-2:-1] == [".ft"] and suffixes[-1] not in FORMATS:
        return "fasttext"
    return FORMATS.get("".join(suffixes[-1:]))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
