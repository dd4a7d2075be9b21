"""The two folders of a job: a hidden work folder, and beside it the result, which appears whole by one rename."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tenor.engines.records import from_json, to_json
from tenor.errors import StoreError, UsageError
from tenor.preparation.job.result import JobReport
from tenor.preparation.job.work_folder import JOB, KEY, WorkFolder, work_path
from tenor.store.atomic import sync, write_bytes, write_json
from tenor.store.manifest import NAME, Manifest
from tenor.store.trusted import read_bytes, read_json

_JOB_LIMIT = 64 << 20  # bytes of job.json, which names every input
_KEY_LIMIT = 1 << 10


class JobFolders:
    """The result folder `out` and the work folder beside it, for the job that `key` identifies."""

    def __init__(self, out: Path, key: str) -> None:
        self.out = Path(out).resolve()  # the last rename does not follow a link
        self.key = key
        self.work = work_path(self.out)
        # A cluster may still run tasks of a job that has failed. With a folder per job, such a task cannot write among
        # the outputs of the next job.
        self.outputs = self.work / key[:16]

    def finished(self) -> tuple[Manifest, JobReport] | None:
        """Manifest and report if the result of this job exists already.

        Raises:
            UsageError: `out` is something else.
        """
        if not self.out.exists():
            return None
        if self.out.is_dir() and not any(self.out.iterdir()):
            if self.out.is_mount():  # the rename at the end would fail
                raise UsageError("is a mount point", where=self.out, remedy="name a folder inside it")
            return None
        report = self._read_report()
        if report is None or not (self.out / NAME).exists():
            raise UsageError(
                "exists already and is not the result of this job",
                where=self.out,
                remedy="choose another --out or remove it first",
            )
        return Manifest.load(self.out), report

    def _read_report(self) -> JobReport | None:
        """The report in job.json; None if the file is missing, damaged or of another job."""
        try:
            values = read_json(self.out / JOB, _JOB_LIMIT, StoreError, file_names=True)
            return from_json(JobReport, values) if values.pop("key", "") == self.key else None
        except (OSError, StoreError, ValueError):
            return None

    @contextlib.contextmanager
    def working(self) -> Iterator[WorkFolder]:
        """The locked work folder. It keeps the outputs of an earlier attempt at the same job.

        Raises:
            UsageError: Another process works for the same result.
        """
        self.work.parent.mkdir(parents=True, exist_ok=True)
        if not self.work.is_symlink():  # a link is refused by `_locked`
            self.work.mkdir(exist_ok=True)
        with self._locked():
            if self._owner() != self.key:
                self._disown()
                for path in self.work.iterdir():
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                write_bytes(self.work / KEY, self.key.encode())
            self.outputs.mkdir(exist_ok=True)
            yield WorkFolder(str(self.outputs))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            handle = os.open(self.work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except NotADirectoryError as error:  # files would be removed from the folder that the link points to
            raise UsageError("is a link, not a work folder", where=self.work, remedy="remove it") from error
        try:
            self._lock(handle)
            yield
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                "is being prepared by another process", where=self.out, remedy="wait until it has finished"
            ) from error

    def _owner(self) -> str:
        """The key of the job that made the outputs in the work folder; empty if they cannot be trusted."""
        try:
            return read_bytes(self.work / KEY, _KEY_LIMIT, StoreError).decode("ascii", "replace")
        except (FileNotFoundError, StoreError):
            return ""

    def _disown(self) -> None:
        """Remove the key before any output, because a process killed midway leaves outputs with missing files."""
        (self.work / KEY).unlink(missing_ok=True)

    def publish(self, manifest: Manifest, report: JobReport) -> None:
        """Complete the result and give it its name. The manifest is the last file, the rename the last step."""
        final = WorkFolder(str(self.outputs)).final
        write_json(final / JOB, {**to_json(report), "key": self.key})
        write_bytes(final / NAME, manifest.to_bytes())
        final.replace(self.out)
        sync(self.out.parent)
        self.discard()

    def discard(self) -> None:
        """Remove the work folder."""
        with contextlib.suppress(OSError):
            self._disown()
        shutil.rmtree(self.work, ignore_errors=True)

    def tidy(self) -> None:
        """Remove a work folder that remains because the job was killed just after its result had appeared."""
        with contextlib.suppress(OSError, UsageError), self._locked():  # if it is locked, its owner removes it
            if self._owner() in ("", self.key):
                self.discard()
