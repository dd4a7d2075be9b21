"""All errors that Tenor raises. Every message says what went wrong, where, and what to do next.

TenorError                 exit code 1
├── UsageError             exit code 2: the command or the call is wrong
│   └── MissingExtra       an optional dependency is not installed
├── CorpusError            raw input cannot be read or trusted
│   └── Unreachable        an address does not answer; a later attempt may succeed
├── StoreError             prepared data is missing, damaged or of another format
├── RunError               a run folder or a checkpoint cannot be used
├── WorkerError            a worker died, hung or lost its peers
├── TrainingError          training cannot continue (non-finite weights or loss, only one class)
└── Stopped                stopped by a signal after saving: exit code 128 + signal number
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

ARGUMENTS = {"from": "from_run"}  # options that cannot have the same name in Python

# An option, such as --batch-size, that is not part of a command in backticks or of a value in quotes
_OPTION = re.compile(r"`[^`]*`|(?<![\w'\"-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add `path` to an OSError that names no file, such as the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


class TenorError(Exception):
    """Base class of all errors that Tenor raises on purpose.

    Code that raises an error writes a setting as the command-line option, such as `--batch-size`. The text of the
    exception has the Python argument `batch_size` instead; `for_command_line` keeps the option.

    Args:
        what: What went wrong.
        where: The file, line, address or rank.
        remedy: What to do next.

    >>> try:  # doctest: +SKIP
    ...     tenor.prepare("missing.csv", "data")
    ... except tenor.TenorError as error:
    ...     print(error)
    missing.csv: cannot be read: No such file or directory; check the name
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | os.PathLike[str] | None = None, remedy: str = "") -> None:
        self.what = what
        self.where = None if where is None else os.fspath(where)
        self.remedy = remedy
        super().__init__(self._join(name_settings(what), name_settings(remedy)))

    @property
    def for_command_line(self) -> str:
        """The line that a command prints."""
        return self._join(self.what, self.remedy)

    def _join(self, what: str, remedy: str) -> str:
        located = f"{self.where}: {what}" if self.where else what
        return f"{located.removesuffix('.')}; {remedy}" if remedy else located  # messages of libraries end with a stop

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON values, to be raised again in another process by `from_dict`.

        >>> TenorError("no such file", where="missing.csv", remedy="check the name").to_dict()
        {'kind': 'TenorError', 'what': 'no such file', 'where': 'missing.csv', 'remedy': 'check the name'}
        """
        return {"kind": type(self).__name__, "what": self.what, "where": self.where, "remedy": self.remedy}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> TenorError:
        """Return the error that `to_dict` described, of the same class.

        Args:
            values: What `to_dict` returned. The name of a class that does not exist becomes TenorError.

        Returns:
            The error, to be raised.

        >>> TenorError.from_dict(UsageError("--lr cannot be 0").to_dict())
        UsageError('lr cannot be 0')
        """
        kind = _classes(TenorError).get(values["kind"], TenorError)
        error = kind.__new__(kind)  # without the constructor, because some classes have other arguments
        TenorError.__init__(error, values["what"], where=values["where"], remedy=values["remedy"])
        error._restore(values)
        return error

    def _restore(self, values: Mapping[str, Any]) -> None:
        """Set the attributes that only a subclass has."""


def _classes(base: type[TenorError]) -> dict[str, type[TenorError]]:
    """A class and all its subclasses by name."""
    found = {base.__name__: base}
    for kind in base.__subclasses__():
        found |= _classes(kind)
    return found


def name_settings(text: str) -> str:
    """Replace options by the names that Python callers know: `--batch-size` becomes `batch_size`."""

    def argument(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else ARGUMENTS.get(found[1], found[1].replace("-", "_"))

    return _OPTION.sub(argument, text)


class UsageError(TenorError):
    """The command or the call is wrong."""

    exit_code = 2


class MissingExtra(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}'", remedy=f"install it with: pip install 'tenor[{extra}]'")


class CorpusError(TenorError):
    """Raw input cannot be read or trusted."""


class Unreachable(CorpusError):
    """An address does not answer; a later attempt may succeed."""


class StoreError(TenorError):
    """Prepared data is missing, damaged or of another format."""


class RunError(TenorError):
    """A run folder or a checkpoint cannot be used."""


class WorkerError(TenorError):
    """A worker died, hung or lost its peers."""


class TrainingError(TenorError):
    """Training cannot continue."""


class Stopped(TenorError):
    """Stopped by a signal after saving.

    Args:
        signal_number: The signal.
        saved: What was saved and how to continue.
    """

    def __init__(self, signal_number: int, saved: str = "") -> None:
        super().__init__(f"stopped by signal {signal_number}", remedy=saved)
        self._set_signal(signal_number)

    def _set_signal(self, number: int) -> None:
        self.signal = number
        self.exit_code = 128 + number

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "signal": self.signal}

    def _restore(self, values: Mapping[str, Any]) -> None:
        self._set_signal(values["signal"])
