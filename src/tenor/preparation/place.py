"""Where a job works and where its result appears: a hidden folder beside the final one, renamed when all is done."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenor.errors import UsageError
from tenor.store.atomic import sync, write_json
from tenor.store.manifest import NAME, Manifest

JOB = "job.json"
KEY = "key"  # the file that says whose the working folder is


class Place:
    """The final folder `out` and the working folder beside it, for the job that `key` names."""

    def __init__(self, out: Path, key: str) -> None:
        self.out = Path(out).resolve()  # the last rename does not follow a link
        self.key = key
        self.work = self.out.with_name(f".{self.out.name}.preparing")
        # A cluster may still run tasks of a job that has failed; apart, they cannot write among the files of the next.
        self.parts = self.work / key[:16]

    def done(self) -> tuple[Manifest, dict[str, Any]] | None:
        """This very job's result if it is there already; UsageError when something else is."""
        if not self.out.exists():
            return None
        if self.out.is_dir() and not any(self.out.iterdir()):
            if self.out.is_mount():  # better told now than by the rename at the end
                raise UsageError("is a mount point", where=self.out, remedy="name a folder inside it")
            return None
        try:
            job: dict[str, Any] = json.loads((self.out / JOB).read_bytes())
        except (OSError, ValueError):
            job = {}
        if job.get("key") != self.key or not (self.out / NAME).exists():
            raise UsageError("is there already", where=self.out, remedy="choose another --out or remove it first")
        return Manifest.load(self.out), job

    @contextlib.contextmanager
    def working(self) -> Iterator[Path]:
        """The job's part of the working folder, locked; what an earlier attempt made stays if the job is the same."""
        self.work.parent.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(exist_ok=True)
        with self._locked():
            if self._owner() != self.key:
                self._disown()
                for path in self.work.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                (self.work / KEY).write_text(self.key, "utf-8")
            self.parts.mkdir(exist_ok=True)
            yield self.parts

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        handle = os.open(self.work, os.O_RDONLY)
        try:
            self._lock(handle)
            yield
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError("is being prepared by another process", where=self.out, remedy="wait for it") from error

    def _owner(self) -> str:
        """The key of the job that the working folder's parts are of; empty when they are to be trusted no more."""
        try:
            return (self.work / KEY).read_text("utf-8")
        except FileNotFoundError:
            return ""

    def _disown(self) -> None:
        """To do before anything is removed: a job that is killed midway leaves parts that have lost some files."""
        (self.work / KEY).unlink(missing_ok=True)

    def publish(self, manifest: Manifest, job: dict[str, Any]) -> None:
        """Finish the folder and give it its name. The manifest is the last file, the rename the last step."""
        final = self.parts / "final"
        write_json(final / JOB, {**job, "key": self.key})
        (final / NAME).write_bytes(manifest.to_bytes())
        sync(final / NAME)
        sync(final)
        final.replace(self.out)
        sync(self.out.parent)
        self.discard()

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._disown()
        shutil.rmtree(self.work, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what is left of this job's working folder when the job was killed after its result had appeared."""
        with contextlib.suppress(OSError, UsageError), self._locked():  # locked: whoever works there will do it
            if self._owner() in ("", self.key):
                self.discard()
