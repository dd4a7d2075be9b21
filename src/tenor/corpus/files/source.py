"""An input file as the readers know it: where it is, what it is, and how its records are laid out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

from tenor.corpus.columns import Columns
from tenor.errors import CorpusError

UTF8 = "utf-8"


@dataclass(frozen=True)
class Kind:
    """What a file is."""

    format: str  # name of a registered format
    compression: str  # "", gz, bz2, zst, zip
    encoding: str = UTF8
    member: str = ""  # the file inside a zip archive

    @property
    def is_plain(self) -> bool:
        """Whether the file holds exactly the bytes that the format reads, so that reading can start anywhere in it."""
        return not self.compression and self.encoding == UTF8


@dataclass(frozen=True)
class Layout:
    """What a format finds out about one file before its records are read."""

    columns: Columns | None = None  # None: the format has no columns
    body: int = 0  # where the first record starts
    details: dict[str, Any] = field(default_factory=dict)  # JSON values that only the format itself uses
    doubt: CorpusError | None = None  # raised if every other input file has doubtful columns too


@dataclass(frozen=True)
class Source:
    """One input file, ready to be read by any worker."""

    path: str
    size: int  # bytes on disk; of a zip archive the member's compressed bytes
    kind: Kind
    columns: Columns | None = None
    body: int = 0
    details: dict[str, Any] = field(default_factory=dict)
    stamp: str = ""  # differs once the file has changed
    folder: str = field(default_factory=os.getcwd)  # where a relative path starts; workers may run elsewhere
    name: str = ""  # shown instead of the path, if given
    unlabelled: bool = False  # whether rows without a rating are kept, with the rating NO_RATING

    @property
    def shown(self) -> str:
        """The name of the source in messages."""
        return self.name or self.path

    def laid_out(self, layout: Layout) -> Source:
        """The same source with the layout that its format has found."""
        return replace(self, columns=layout.columns, body=layout.body, details=layout.details)
