"""The folders of one case: the hostile folder, the output folder, and files of other users that must not change."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

SECRET = "the-secret-of-another-user"
_LARGEST_READ = 1 << 20

Photograph = dict[str, tuple[object, ...]]


@dataclass(frozen=True)
class Arena:
    root: Path

    @property
    def case(self) -> Path:
        """The hostile folder; a hostile benchmark result is a file in it."""
        return self.root / "case"

    @property
    def out(self) -> Path:
        """The folder for --out, the only one that may change."""
        return self.root / "out"

    @property
    def victims(self) -> Path:
        return self.root / "victims"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def build(self) -> None:
        for folder in (self.case, self.out, self.temporary, self.root / "home"):
            folder.mkdir(parents=True)
        folder = self.victims / "folder"
        folder.mkdir(parents=True)
        names = ("config.json", "step-0000000099.json", "step-0000000001.safetensors", ".step-1.tmp", "vocab.json")
        for path in (self.victims / "file", *(folder / name for name in (*names, ".file.1.tmp", "report.html"))):
            path.write_text(f'{{"text": "{SECRET}"}}\n', "utf-8")

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def photograph(self) -> Photograph:
        """Describe every file and folder, except those below `out` and the temporary folder."""
        return dict(self._look(self.root))

    def _look(self, folder: Path) -> list[tuple[str, tuple[object, ...]]]:
        found = []
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path = Path(entry.path)
            if path in (self.out, self.temporary):
                continue
            name = os.fsencode(path.relative_to(self.root)).decode("utf-8", "backslashreplace")
            found.append((name, _describe(path)))
            if entry.is_dir(follow_symlinks=False):
                found += self._look(path)
        return found


def _describe(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content: object = None
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_READ:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, content


def changes(before: Photograph, after: Photograph, allowed: tuple[str, ...]) -> list[str]:
    """Return the paths that changed without permission; a permitted path that ends in / covers everything below it."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [name for name in names if not any(_covers(permit, name) for permit in allowed)]


def _covers(permit: str, name: str) -> bool:
    return name == permit.rstrip("/") or (permit.endswith("/") and name.startswith(permit))
