"""Check a whole folder of prepared data against its manifest."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tenor.errors import StoreError
from tenor.store.manifest import NAME, UNLABELLED, VOCABULARY_BYTES, Manifest
from tenor.store.shard import check_shard, check_tokens
from tenor.store.trusted import open_regular, sha256_of


def verify_data(folder: Path | str) -> Manifest:
    """Compare every shard and the vocabulary with the manifest; StoreError names the first file that differs.

    A run calls this once per host, before HDF5 parses any file, and then opens splits with `verify=False`. The hashes
    detect damage. An attacker can make hashes that match, so the content of the shards is checked too.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    _check_vocabulary(folder / "vocab.json", manifest)
    for name in manifest.splits:
        verify_split(folder, manifest, name)
    return manifest


def _check_vocabulary(path: Path, manifest: Manifest) -> None:
    try:
        with open_regular(path, StoreError) as handle:
            if os.fstat(handle).st_size > VOCABULARY_BYTES:  # a sparse file costs its author nothing
                what = f"has more than the {VOCABULARY_BYTES:,} bytes allowed for a vocabulary"
                raise StoreError(what, where=path, remedy="use data from a source that you trust")
            digest = sha256_of(handle)
    except FileNotFoundError as error:
        raise StoreError("vocabulary is missing", where=path, remedy="copy or prepare the data again") from error
    if digest != manifest.vocab_sha256:
        raise StoreError(
            "vocabulary does not match its hash in the manifest", where=path, remedy="copy or prepare the data again"
        )


def verify_split(folder: Path, manifest: Manifest, name: str) -> None:
    """Compare the shards of one split with the manifest: first the hashes, then rows, labels and tokens."""
    info = manifest.splits[name]
    counts = np.zeros(len(info.class_counts), np.int64)
    for shard in info.shards:
        check_shard(folder, shard)
        counts += check_tokens(folder, shard, manifest, is_labelled=name != UNLABELLED)
    if counts.tolist() != list(info.class_counts):
        raise StoreError(
            f"the shards of {name} have {counts.tolist()} rows per class, not {list(info.class_counts)} as listed",
            where=folder / NAME,
            remedy="prepare the data again",
        )
