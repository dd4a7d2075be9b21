"""How a file is compressed, recognised by its first bytes; and the suffixes of its name without the compression's."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from tenor.corpus.files.remote import is_http
from tenor.errors import CorpusError

COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".zst": "zst", ".zstd": "zst", ".zip": "zip"}
_MAGIC = (
    (b"\x1f\x8b", "gz"),
    (b"BZh", "bz2"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)


def compression_of(name: str, start: bytes) -> str:
    """The compression of a file with these first bytes: `gz`, `bz2`, `zst`, `zip`, or "" for none.

    Raises:
        CorpusError: The name promises a compression, but the bytes are not compressed.
    """
    for magic, compression in _MAGIC:
        if start.startswith(magic):
            return compression
    suffix = "".join(_all_suffixes(name)[-1:])
    if suffix in COMPRESSIONS and start:
        remedy = f"fetch the file again, or rename it without {suffix}"
        raise CorpusError(f"is not {COMPRESSIONS[suffix]} data, although its name says so", where=name, remedy=remedy)
    return ""


def suffixes_of(name: str) -> list[str]:
    """The suffixes of a file name in lower case, without those of compressions.

    >>> suffixes_of("Reviews.CSV.gz")
    ['.csv']
    """
    return [suffix for suffix in _all_suffixes(name) if suffix not in COMPRESSIONS]


def _all_suffixes(name: str) -> list[str]:
    path = urlsplit(name).path if is_http(name) else name  # without the query of a web address
    return [suffix.lower() for suffix in PurePosixPath(path).suffixes]
