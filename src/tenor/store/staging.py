"""Copies of prepared data in a local cache: made once per node, verified, and shared by all processes."""

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
from tenor.store.manifest import LIMIT, NAME, Manifest
from tenor.store.trusted import open_regular
from tenor.store.verify import verify_data

_UNFINISHED = ".copy-"  # prefix of an unfinished copy, which is locked while the process that makes it runs


def stage_data(data: str | Path, cache: str | Path) -> Path:
    """A local, verified copy of prepared data. Many processes may call this at the same time.

    The copy is named by the hash of the manifest. So the same data from two places is copied once, and changed data is
    copied again. Unfinished copies of killed processes are removed.

    Args:
        data: Folder or URL of prepared data.
        cache: Local folder for the copies.

    Returns:
        The folder of the copy.

    Raises:
        StoreError: The data is missing or damaged.
    """
    cache = Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(cache)
    with _manifest_of(str(data), cache) as manifest:
        target = cache / manifest.sha256
        with _locked(cache / f".{manifest.sha256}.lock"):
            if target.exists():
                try:
                    verify_data(target)
                except StoreError:
                    shutil.rmtree(target)  # a damaged copy can be removed: the original still exists
            if not target.exists():
                _copy(str(data), manifest, target)
    return target


@contextlib.contextmanager
def _manifest_of(data: str, cache: Path) -> Iterator[Manifest]:
    if "://" not in data:
        yield Manifest.load(Path(data))
        return
    with _unfinished(cache) as temporary:
        _fetch(data, NAME, temporary / NAME, LIMIT)
        yield Manifest.load(temporary)


def _copy(data: str, manifest: Manifest, target: Path) -> None:
    shards = [shard for split in manifest.splits.values() for shard in split.shards]
    with _unfinished(target.parent) as temporary:
        for file, size in [*((shard.file, shard.bytes) for shard in shards), ("vocab.json", None), (NAME, LIMIT)]:
            (temporary / file).parent.mkdir(parents=True, exist_ok=True)
            _fetch(data, file, temporary / file, size)
        verify_data(temporary)
        sync(temporary)
        temporary.rename(target)


@contextlib.contextmanager
def _unfinished(cache: Path) -> Iterator[Path]:
    """A new folder in the cache, removed at the end; if the process is killed, the next process removes it."""
    folder = cache / f"{_UNFINISHED}{uuid.uuid4().hex}"
    with _locked(cache / ".cache.lock"):  # nobody may look at the folder before it is locked
        folder.mkdir()
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _remove_leftovers(cache: Path) -> None:
    """Remove unfinished copies of processes that have ended, whose locks are free."""
    with _locked(cache / ".cache.lock"):
        for folder in cache.glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(OSError):  # still locked, not a folder, or owned by another user
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                finally:
                    os.close(handle)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file; other processes wait. The system frees the lock when the process ends."""
    handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _fetch(data: str, file: str, to: Path, limit: int | None) -> None:
    """Copy one file; `limit` is its maximum size, if known."""
    try:
        if "://" not in data:
            _copy_file(Path(data) / file, to, limit)
            return
        import fsspec

        system, root = fsspec.core.url_to_fs(data)
        system.get_file(f"{root.rstrip('/')}/{file}", str(to))
    except FileNotFoundError as error:
        raise StoreError(
            f"is not prepared data: it has no {file}", where=data, remedy="check the name, or prepare the data again"
        ) from error


def _copy_file(source: Path, to: Path, limit: int | None) -> None:
    with open_regular(source, StoreError) as handle, os.fdopen(handle, "rb", closefd=False) as file:
        size = os.fstat(handle).st_size
        if limit is not None and size > limit:
            raise StoreError(
                f"has {size} bytes, more than the expected {limit}", where=source, remedy="prepare the data again"
            )
        with to.open("xb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
