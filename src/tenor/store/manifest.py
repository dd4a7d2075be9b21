"""The manifest: what a folder of prepared data holds. It is written last, so a folder that has one is whole."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tenor.errors import StoreError
from tenor.store.atomic import canonical

NAME = "manifest.json"
FORMAT = 1
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class ShardInfo:
    file: str  # from the folder, with forward slashes
    rows: int
    tokens: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class SplitInfo:
    rows: int
    tokens: int
    class_counts: tuple[int, ...]
    shards: tuple[ShardInfo, ...]


@dataclass(frozen=True)
class Manifest:
    """Everything that names the data, and nothing that differs between two ways of making the same."""

    classes: tuple[str, ...]  # index = label id
    vocab_size: int  # padding and unknown included
    vocab_sha256: str
    max_length: int
    tokeniser: dict[str, Any]
    labels: dict[str, Any]  # the rule that made classes of ratings
    rows: dict[str, Any]  # the accounting: read, kept, duplicates, dropped, rejected
    splits: dict[str, SplitInfo]
    format: int = FORMAT

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        return canonical(dataclasses.asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """The manifest of a folder; StoreError when it is no prepared data."""
        path = Path(folder) / NAME
        try:
            raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreError(
                f"is no prepared data: it has no {NAME}", where=folder, remedy="make it with tenor prepare"
            ) from error
        manifest = _parse(raw, path)
        if manifest.to_bytes() != raw:
            raise StoreError("manifest is damaged: not as it was written", where=path, remedy="prepare the data again")
        return manifest


def _parse(raw: bytes, path: Path) -> Manifest:
    try:
        values = json.loads(raw)
        if values.get("format") != FORMAT:
            raise StoreError(
                f"manifest of format {values.get('format')!r}, this version reads {FORMAT}",
                where=path,
                remedy="prepare the data again",
            )
        values["splits"] = {name: _split(split) for name, split in values["splits"].items()}
        values["classes"] = tuple(values["classes"])
        return Manifest(**values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError("manifest is damaged", where=path, remedy="prepare the data again") from error


def _split(values: dict[str, Any]) -> SplitInfo:
    shards = tuple(ShardInfo(**shard) for shard in values["shards"])
    for path in (PurePosixPath(shard.file) for shard in shards):
        if path.is_absolute() or ".." in path.parts:
            raise ValueError("a shard outside the folder: a copy of it would be written anywhere")
    return SplitInfo(values["rows"], values["tokens"], tuple(values["class_counts"]), shards)
