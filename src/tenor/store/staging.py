"""Copies of prepared data in a local cache: made once a node, verified, shared by every process that asks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from tenor.errors import StoreError
from tenor.store.atomic import sync
from tenor.store.manifest import NAME, Manifest
from tenor.store.verify import verify_data


def stage_data(data: str | Path, cache: str | Path) -> Path:
    """A local, verified copy of the folder or URL `data`, under `cache`; many processes may ask at the same time.

    The copy is named by the manifest's hash, so the same data from two places is copied once and changed data anew.
    """
    cache = Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    with _manifest_of(str(data), cache) as manifest:
        target = cache / manifest.sha256
        with _locked(cache / f".{manifest.sha256}.lock"):
            if target.exists():
                try:
                    verify_data(target)
                except StoreError:
                    shutil.rmtree(target)  # a damaged copy is no loss: the original is there
            if not target.exists():
                _copy(str(data), manifest, target)
    return target


@contextlib.contextmanager
def _manifest_of(data: str, cache: Path) -> Iterator[Manifest]:
    if "://" not in data:
        yield Manifest.load(Path(data))
        return
    temporary = cache / f".{uuid.uuid4().hex}"
    temporary.mkdir()
    try:
        _fetch(data, NAME, temporary / NAME)
        yield Manifest.load(temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the others wait. The system frees the lock of a process that dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _copy(data: str, manifest: Manifest, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        files = [shard.file for split in manifest.splits.values() for shard in split.shards]
        for file in [*files, "vocab.json", NAME]:
            (temporary / file).parent.mkdir(parents=True, exist_ok=True)
            _fetch(data, file, temporary / file)
        verify_data(temporary)
        sync(temporary)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fetch(data: str, file: str, to: Path) -> None:
    try:
        if "://" not in data:
            shutil.copyfile(Path(data) / file, to)
            return
        import fsspec

        system, root = fsspec.core.url_to_fs(data)
        system.get_file(f"{root.rstrip('/')}/{file}", str(to))
    except FileNotFoundError as error:
        raise StoreError(
            f"is no prepared data: it has no {file}", where=data, remedy="check the name, or prepare it again"
        ) from error
