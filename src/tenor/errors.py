"""One error tree. Every message says what went wrong, where, and what to do next.

TenorError                 exit code 1
├── UsageError             exit code 2: the command or the call is wrong
│   └── MissingExtra       an optional dependency is not installed
├── CorpusError            raw input that cannot be read or trusted
│   └── Unreachable        an address that does not answer as it should; it may later
├── StoreError             prepared data that is missing, damaged or of another kind
├── RunError               a run folder or a checkpoint that cannot be used
├── WorkerError            a worker died, hung or lost its peers
├── TrainingError          training cannot go on (weights or loss not finite, one class only)
└── Stopped                stopped by a signal after saving: exit code 128 + signal
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """An OSError that names no file, as that of a full disk does not, names `path`."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


class TenorError(Exception):
    """`what` went wrong, `where` (a file, a line, a rank) and the `remedy`, joined into one line."""

    exit_code = 1

    def __init__(self, what: str, *, where: str | os.PathLike[str] | None = None, remedy: str = "") -> None:
        self.what = what
        self.where = None if where is None else os.fspath(where)
        self.remedy = remedy
        located = f"{self.where}: {what}" if self.where else what
        super().__init__(f"{located}; {remedy}" if remedy else located)


class UsageError(TenorError):
    exit_code = 2


class MissingExtra(UsageError):
    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}'", remedy=f"install it with: pip install 'tenor[{extra}]'")


class CorpusError(TenorError):
    """Raw input that cannot be read or trusted."""


class Unreachable(CorpusError):
    """An address that does not answer as it should; it may later."""


class StoreError(TenorError):
    """Prepared data that is missing, damaged or of another kind."""


class RunError(TenorError):
    """A run folder or a checkpoint that cannot be used."""


class WorkerError(TenorError):
    """A worker died, hung or lost its peers."""


class TrainingError(TenorError):
    """Training cannot go on."""


class Stopped(TenorError):
    """Stopped by a signal, after saving what there was."""

    def __init__(self, signal_number: int, saved: str = "") -> None:
        super().__init__(f"stopped by signal {signal_number}", remedy=saved)
        self.signal = signal_number
        self.exit_code = 128 + signal_number
