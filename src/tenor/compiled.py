"""Compiles functions with numba and caches the machine code on disk, if a cache folder is writable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile `function` on first use. Without a writable cache folder, every process compiles it again."""
    return _compile(function)


def inlined(function: F) -> F:
    """Compile a function that hot loops call. Inlining avoids the atomic reference counts of its array arguments."""
    return _compile(function, forceinline=True)


def fast_compiled(function: F) -> F:
    """The same for sums of floats whose order may change: four times as fast, equal to rounding."""
    return _compile(function, fastmath=True)


def fast_inlined(function: F) -> F:
    """The same as `inlined`, for sums of floats whose order may change."""
    return _compile(function, forceinline=True, fastmath=True)


def is_kept(function: Any) -> bool:
    """Return whether numba's disk cache holds the current version of `function`, compiled for this processor."""
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    if file is None:  # no cache folder is writable
        return False
    processor = function.targetctx.codegen().magic_tuple()
    return any(key[1] == processor for key in file._load_index())


def _compile(function: F, **options: bool) -> F:
    try:
        made: F = njit(cache=True, error_model="numpy", nogil=True, **options)(function)
    except RuntimeError:  # numba found neither a writable __pycache__ nor a user cache folder
        made = njit(error_model="numpy", nogil=True, **options)(function)
    return made
