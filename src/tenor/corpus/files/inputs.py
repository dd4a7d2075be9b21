"""The list of input files behind the names that the caller gave: files, globs, folders and URLs."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tenor.corpus.files.remote import explained, filesystem, is_http, is_url
from tenor.errors import CorpusError

_HIDDEN = (".", "_")
_PREPARED = ("manifest.json", "vocab.json", "job.json")  # a folder with all three is prepared data

IsReadable = Callable[[str], bool]  # whether a file name has the suffix of a known format


def expand(inputs: Sequence[str | Path], is_readable: IsReadable) -> list[str]:
    """Every input file, in the given order; the files of a folder or a glob are sorted by name.

    A file that several names or links lead to is listed once, under the first name.

    Args:
        inputs: Names of files, globs, folders and URLs.
        is_readable: Which files of a folder to take, by their names.
    """
    found: dict[str, str] = {}
    for file in (file for name in inputs for file in _expand(str(name), is_readable)):
        found.setdefault(file if is_url(file) else os.path.realpath(file), file)
    return list(found.values())


def _expand(name: str, is_readable: IsReadable) -> list[str]:
    if is_url(name):
        return _expand_url(name, is_readable)
    path = Path(name)
    if path.is_dir():
        return _some(_of_folder(name, _files_below(path), is_readable), name, "contains no file of a known format")
    if not path.exists() and glob.has_magic(name):
        return _some(_of_glob(name, is_readable), name, "no file matches")
    return [name]


def _expand_url(name: str, is_readable: IsReadable) -> list[str]:
    system, path = filesystem(name)
    with explained(name):
        if glob.has_magic(urlsplit(path).path if is_http(name) else path):
            found: list[str] = []
            for match, info in sorted(system.glob(path, detail=True).items()):
                folder = info["type"] == "directory" and not is_http(name)
                found += _of_folder(match, system.find(match), is_readable) if folder else [match]
            return _some([system.unstrip_protocol(file) for file in found], name, "no file matches")
        if not is_http(name) and system.isdir(path):  # web servers do not list folders
            found = [system.unstrip_protocol(file) for file in _of_folder(path, system.find(path), is_readable)]
            return _some(found, name, "contains no file of a known format")
    return [name]


def _of_glob(name: str, is_readable: IsReadable) -> list[str]:
    """The matching files and the files of matching folders, without prepared data that only the pattern finds."""
    base = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(name).parts))
    found = []
    for match in sorted(glob.glob(name, recursive=True)):  # noqa: PTH207 - Path.glob takes no absolute pattern
        path = Path(match)
        below = itertools.accumulate(path.relative_to(base).parts, Path.joinpath, initial=base)
        if not any(_is_prepared(folder) for folder in itertools.islice(below, 1, None)):
            found += _of_folder(match, _files_below(path), is_readable) if path.is_dir() else [match]
    return found


def _is_prepared(folder: Path) -> bool:
    return all((folder / name).exists() for name in _PREPARED)


def _files_below(folder: Path) -> list[str]:
    """Every file except those in hidden folders, where running jobs keep their work."""
    found = []
    for place, inner, names in os.walk(folder, onerror=_refuse):
        inner[:] = [name for name in inner if not name.startswith(_HIDDEN)]
        found += [str(path) for path in (Path(place, name) for name in names) if path.is_file()]
    return found


def _refuse(error: OSError) -> None:
    """Fail on a folder that cannot be searched, because nobody would notice that its files are missing."""
    reason = error.strerror or type(error).__name__
    raise CorpusError(
        f"cannot be searched: {reason}", where=error.filename, remedy="make it readable, or name the files to read"
    ) from error


def _of_folder(folder: str, files: list[str], is_readable: IsReadable) -> list[str]:
    """The readable files of a folder, without hidden files, prepared data and markers such as _SUCCESS."""
    within = {file: PurePosixPath(file).relative_to(folder) for file in sorted(files)}
    marked = [{path.parent for path in within.values() if path.name == name} for name in _PREPARED]
    prepared = set.intersection(*marked)
    return [
        file
        for file, path in within.items()
        if not _is_hidden(path) and is_readable(path.name) and prepared.isdisjoint(path.parents)
    ]


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(_HIDDEN) for part in path.parts)


def _some(files: list[str], name: str, problem: str) -> list[str]:
    if not files:
        raise CorpusError(problem, where=name, remedy="check the name")
    return files
