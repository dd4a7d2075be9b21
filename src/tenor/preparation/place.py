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


class Place:
    """The final folder `out` and the working folder beside it, for the job that `key` names."""

    def __init__(self, out: Path, key: str) -> None:
        self.out = Path(out).absolute()
        self.key = key
        self.work = self.out.with_name(f".{self.out.name}.preparing")

    def done(self) -> tuple[Manifest, dict[str, Any]] | None:
        """This very job's result if it is there already; UsageError when something else is."""
        if not self.out.exists() or (self.out.is_dir() and not any(self.out.iterdir())):
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
        """The working folder, locked; an earlier attempt's parts stay if the job is the same."""
        self.work.parent.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(exist_ok=True)
        handle = os.open(self.work, os.O_RDONLY)
        try:
            self._lock(handle)
            known = self.work / "key"
            if not known.exists() or known.read_text("utf-8") != self.key:
                for path in self.work.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                known.write_text(self.key, "utf-8")
            yield self.work
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError("is being prepared by another process", where=self.out, remedy="wait for it") from error

    def publish(self, manifest: Manifest, job: dict[str, Any]) -> None:
        """Finish the folder and give it its name. The manifest is the last file, the rename the last step."""
        final = self.work / "final"
        write_json(final / JOB, {**job, "key": self.key})
        (final / NAME).write_bytes(manifest.to_bytes())
        sync(final / NAME)
        sync(final)
        final.replace(self.out)
        sync(self.out.parent)
        self.discard()

    def discard(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
