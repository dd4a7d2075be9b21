"""What an engine's library changes in this process, put back when the engine closes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def kept_environment() -> Iterator[None]:
    """Dask and Spark set variables for their children; ours are as before afterwards."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
