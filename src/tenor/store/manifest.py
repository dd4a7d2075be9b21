"""The manifest: what a folder of prepared data contains. It is written last, so a folder that has one is complete."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tenor.errors import StoreError
from tenor.store.atomic import canonical
from tenor.store.trusted import parse_json, read_bytes

NAME = "manifest.json"
FORMAT = 1
SPLITS = ("train", "valid", "test")
UNLABELLED = "unlabelled"  # the split of rows without a rating; only `prepare --unlabelled` makes it
ALL_SPLITS = (*SPLITS, UNLABELLED)
LIMIT = 16 << 20  # maximum bytes of the file: enough for 80,000 shards or 10¹² tokens
VOCABULARY_BYTES = 256 << 20  # maximum bytes of the vocabulary beside it
MAX_CLASSES = 256  # a label is one byte
NO_LABEL = 255  # in place of the label of each row of UNLABELLED
MAX_COUNT = 1 << 50  # maximum number of rows, tokens or bytes
MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True)
class ShardInfo:
    """One shard in the manifest."""

    file: str  # relative to the folder, with forward slashes
    rows: int
    tokens: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class SplitInfo:
    """One split in the manifest."""

    rows: int
    tokens: int
    class_counts: tuple[int, ...]  # empty for UNLABELLED
    shards: tuple[ShardInfo, ...]


@dataclass(frozen=True)
class Manifest:
    """Everything that identifies the data, and nothing that depends on where or how it was prepared."""

    classes: tuple[str, ...]  # a label is an index of this tuple
    vocab_size: int  # including padding and unknown
    vocab_sha256: str
    max_length: int
    tokeniser: dict[str, Any]
    labels: dict[str, Any]  # the rule from ratings to classes
    rows: dict[str, Any]  # numbers of rows: read, kept, duplicates, dropped, rejected
    splits: dict[str, SplitInfo]
    text: dict[str, Any] = dataclasses.field(default_factory=dict)  # how a text is made of columns; see `text_rule`
    format: int = FORMAT

    @property
    def sha256(self) -> str:
        """The hash that identifies the data."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The content of the manifest file."""
        values = dataclasses.asdict(self)
        if not self.text:  # so that data without titles is the same as in older versions
            del values["text"]
        return canonical(values)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Read and check the manifest of a folder; StoreError if the folder is not prepared data."""
        path = Path(folder) / NAME
        try:
            raw = read_bytes(path, LIMIT, StoreError)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreError(
                f"is not prepared data: it has no {NAME}", where=folder, remedy="create it with tenor prepare"
            ) from error
        manifest = _parse(raw, path)
        if manifest.to_bytes() != raw:
            what = "manifest is damaged: it is not in its canonical form"
            raise StoreError(what, where=path, remedy="prepare the data again")
        return manifest


def text_rule(title_column: str | None) -> dict[str, Any]:
    """How the text of a review is made of columns, for manifests and run folders; {} if it is one column."""
    return {"title_column": title_column, "joined_by": " "} if title_column else {}


def _parse(raw: bytes, path: Path) -> Manifest:
    values = parse_json(raw, path, StoreError)
    if values.get("format") != FORMAT:
        raise StoreError(
            f"manifest has format {str(values.get('format'))[:20]}, but this version of Tenor reads format {FORMAT}",
            where=path,
            remedy="prepare the data again",
        )
    try:
        values["splits"] = {name: _split(split) for name, split in values["splits"].items()}
        values["classes"] = tuple(values["classes"])
        manifest = Manifest(**values)
        check(manifest)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f": {error}" if type(error) is ValueError else ""
        raise StoreError(f"manifest is damaged{reason}", where=path, remedy="prepare the data again") from error
    return manifest


def _split(values: dict[str, Any]) -> SplitInfo:
    shards = tuple(ShardInfo(**shard) for shard in values["shards"])
    return SplitInfo(values["rows"], values["tokens"], tuple(values["class_counts"]), shards)


def check(manifest: Manifest) -> None:
    """Raise ValueError unless `prepare` could have written every number, and the sums agree."""
    classes, accounting = manifest.classes, manifest.rows
    _require(0 < len(classes) <= MAX_CLASSES and set(map(type, classes)) == {str}, "the classes are not names")
    _require(len(set(classes)) == len(classes), "two classes have the same name")
    _require(_is_count(manifest.vocab_size) and 2 <= manifest.vocab_size <= MAX_INT32, "vocab_size is out of range")
    _require(_is_count(manifest.max_length) and manifest.max_length > 0, "max_length is out of range")
    _require(_is_hash(manifest.vocab_sha256), "vocab_sha256 is not a hash")
    _require(type(manifest.tokeniser) is dict and type(manifest.labels) is dict, "tokeniser or labels are not objects")
    _require(set(manifest.splits) - {UNLABELLED} == set(SPLITS), f"the splits are not {', '.join(SPLITS)}")
    files = [shard.file for split in manifest.splits.values() for shard in split.shards]
    _require(len(set(files)) == len(files), "a shard is listed twice")
    for name, split in manifest.splits.items():
        _check_split(name, split, 0 if name == UNLABELLED else len(classes))
    _require(accounting["kept"] == sum(split.rows for split in manifest.splits.values()), "the kept rows do not add up")
    parts = [accounting["kept"], accounting["duplicates"]]
    parts += [*accounting["dropped"].values(), *accounting["rejected"].values()]
    _require(all(map(_is_count, [accounting["read"], *parts])), "a count of rows is out of range")
    _require(sum(parts) == accounting["read"], "the rows read do not add up")


def _check_split(name: str, split: SplitInfo, classes: int) -> None:
    for shard in split.shards:
        _require(_is_inside(shard.file), "the file of a shard is not inside the folder")
        _require(
            all(map(_is_count, (shard.rows, shard.tokens, shard.bytes))), f"a count of {shard.file} is out of range"
        )
        _require(_is_hash(shard.sha256), f"the hash of {shard.file} is not a hash")
    counts, rows = split.class_counts, sum(shard.rows for shard in split.shards)
    _require(
        len(counts) == classes and all(map(_is_count, counts)), f"the class counts of {name} do not fit the classes"
    )
    _require(_is_count(split.rows) and split.rows == rows, f"the rows of {name} do not add up")
    _require(not classes or sum(counts) == rows, f"the rows of {name} do not add up")
    _require(split.tokens == sum(shard.tokens for shard in split.shards), f"the tokens of {name} do not add up")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_COUNT


def _is_hash(value: object) -> bool:
    return type(value) is str and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_inside(file: object) -> bool:
    """Whether the file name of a shard lies in the folder and cannot be another file of the prepared data."""
    if type(file) is not str or "\0" in file or not file.endswith(".h5"):
        return False
    path = PurePosixPath(file)
    return not path.is_absolute() and ".." not in path.parts
