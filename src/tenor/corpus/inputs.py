"""What the caller names, as a list of files: files, globs, folders, URLs."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tenor.corpus.formats import COMPRESSIONS, FORMATS
from tenor.corpus.streams import filesystem, is_url
from tenor.errors import CorpusError


def expand(inputs: Sequence[str | Path]) -> list[str]:
    """Every file, in the order given; those of a folder or a glob sorted by name. None is taken twice."""
    files = [file for name in inputs for file in _expand(str(name))]
    return list(dict.fromkeys(files))


def _expand(name: str) -> list[str]:
    if is_url(name):
        return _expand_url(name)
    path = Path(name)
    if path.is_dir():
        found = [str(file) for file in path.rglob("*") if file.is_file()]
        return _of_folder(name, found)
    if not path.exists() and glob.has_magic(name):
        return _some(sorted(glob.glob(name, recursive=True)), name, "no file matches")  # noqa: PTH207 - absolute too
    return [name]


def _expand_url(name: str) -> list[str]:
    system, path = filesystem(name)
    if glob.has_magic(path):
        return _some([system.unstrip_protocol(file) for file in sorted(system.glob(path))], name, "no file matches")
    if not name.startswith(("http://", "https://")) and system.isdir(path):
        return _of_folder(name, [system.unstrip_protocol(file) for file in system.find(path)])
    return [name]


def _of_folder(name: str, files: list[str]) -> list[str]:
    """The files of a folder that look like reviews; hidden ones and markers such as _SUCCESS are left out."""
    chosen = [file for file in sorted(files) if _looks_right(PurePosixPath(file))]
    return _some(chosen, name, "holds no file of a known format")


def _looks_right(path: PurePosixPath) -> bool:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSIONS]
    return not path.name.startswith((".", "_")) and any(suffix in FORMATS for suffix in suffixes[-2:])


def _some(files: list[str], name: str, complaint: str) -> list[str]:
    if not files:
        raise CorpusError(complaint, where=name, remedy="check the name")
    return files
