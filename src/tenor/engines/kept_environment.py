"""Undo what an engine's library changes in this process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def kept_environment() -> Iterator[None]:
    """Restore the environment variables at the end: Dask and Spark set some for their child processes."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
