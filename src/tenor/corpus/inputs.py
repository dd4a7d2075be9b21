"""What the caller names, as a list of files: files, globs, folders, URLs."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tenor.corpus.formats import format_of_name
from tenor.corpus.remote import explained, filesystem, is_http, is_url
from tenor.errors import CorpusError

_HIDDEN = (".", "_")
_PREPARED = ("manifest.json", "vocab.json", "job.json")  # a folder with all of them is what prepare has made


def expand(inputs: Sequence[str | Path]) -> list[str]:
    """Every file, in the order given; those of a folder or a glob sorted by name.

    None is taken twice, by whatever names or links: the first name stands.
    """
    found: dict[str, str] = {}
    for file in (file for name in inputs for file in _expand(str(name))):
        found.setdefault(file if is_url(file) else os.path.realpath(file), file)
    return list(found.values())


def _expand(name: str) -> list[str]:
    if is_url(name):
        return _expand_url(name)
    path = Path(name)
    if path.is_dir():
        return _some(_of_folder(name, _files_below(path)), name, "holds no file of a known format")
    if not path.exists() and glob.has_magic(name):
        return _some(_of_glob(name), name, "no file matches")
    return [name]


def _expand_url(name: str) -> list[str]:
    system, path = filesystem(name)
    with explained(name):
        if glob.has_magic(urlsplit(path).path if is_http(name) else path):
            found: list[str] = []
            for match, info in sorted(system.glob(path, detail=True).items()):
                folder = info["type"] == "directory" and not is_http(name)
                found += _of_folder(match, system.find(match)) if folder else [match]
            return _some([system.unstrip_protocol(file) for file in found], name, "no file matches")
        if not is_http(name) and system.isdir(path):  # a web server lists no folders
            found = [system.unstrip_protocol(file) for file in _of_folder(path, system.find(path))]
            return _some(found, name, "holds no file of a known format")
    return [name]


def _of_glob(name: str) -> list[str]:
    """The files that match, and those of the folders that match; none of prepared data, unless it is named."""
    base = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(name).parts))
    found = []
    for match in sorted(glob.glob(name, recursive=True)):  # noqa: PTH207 - absolute too
        path = Path(match)
        below = itertools.accumulate(path.relative_to(base).parts, Path.joinpath, initial=base)
        if not any(_is_prepared(folder) for folder in itertools.islice(below, 1, None)):
            found += _of_folder(match, _files_below(path)) if path.is_dir() else [match]
    return found


def _is_prepared(folder: Path) -> bool:
    return all((folder / name).exists() for name in _PREPARED)


def _files_below(folder: Path) -> list[str]:
    """Every file but those of hidden folders, where jobs are at work."""
    found = []
    for place, inner, names in os.walk(folder, onerror=_refuse):
        inner[:] = [name for name in inner if not name.startswith(_HIDDEN)]
        found += [str(path) for path in (Path(place, name) for name in names) if path.is_file()]
    return found


def _refuse(error: OSError) -> None:
    """A folder that cannot be searched: leaving its files out would go unseen."""
    told = error.strerror or type(error).__name__
    raise CorpusError(
        f"cannot be searched: {told}", where=error.filename, remedy="make it readable, or name the files to take"
    ) from error


def _of_folder(folder: str, files: list[str]) -> list[str]:
    """The files that look like reviews: none that is hidden, none of prepared data, no markers such as _SUCCESS."""
    within = {file: PurePosixPath(file).relative_to(folder) for file in sorted(files)}
    marked = [{path.parent for path in within.values() if path.name == name} for name in _PREPARED]
    prepared = set.intersection(*marked)
    return [file for file, path in within.items() if _looks_right(path) and prepared.isdisjoint(path.parents)]


def _looks_right(path: PurePosixPath) -> bool:
    shown = not any(part.startswith(_HIDDEN) for part in path.parts)
    return shown and format_of_name(path.name) is not None


def _some(files: list[str], name: str, complaint: str) -> list[str]:
    if not files:
        raise CorpusError(complaint, where=name, remedy="check the name")
    return files
