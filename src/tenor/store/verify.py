"""Checking a whole folder of prepared data against its manifest."""

from __future__ import annotations

from pathlib import Path

from tenor.errors import StoreError
from tenor.store.atomic import file_sha256
from tenor.store.manifest import Manifest
from tenor.store.shard import check_shard


def verify_data(folder: Path | str) -> Manifest:
    """Compare every shard and the vocabulary with the manifest; StoreError names the first that differs.

    A run calls it once a node, before HDF5 parses any of the files, and then opens splits with `verify=False`.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    vocabulary = folder / "vocab.json"
    if not vocabulary.exists():
        raise StoreError("vocabulary is missing", where=vocabulary, remedy="copy or prepare the data again")
    if file_sha256(vocabulary) != manifest.vocab_sha256:
        raise StoreError(
            "vocabulary has another hash than the manifest", where=vocabulary, remedy="copy or prepare the data again"
        )
    for split in manifest.splits.values():
        for shard in split.shards:
            check_shard(folder, shard)
    return manifest
