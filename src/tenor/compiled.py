"""Numba functions, kept on disk after the first compilation wherever there is a place to keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile `function` on first use. Without a writable cache folder it is compiled again in every process."""
    return _compile(function)


def inlined(function: F) -> F:
    """The same for what hot loops call: a call that is not inlined counts references to its arrays, atomically."""
    return _compile(function, forceinline=True)


def _compile(function: F, **options: bool) -> F:
    try:
        made: F = njit(cache=True, error_model="numpy", nogil=True, **options)(function)
    except RuntimeError:  # numba found neither a writable __pycache__ nor a user cache folder
        made = njit(error_model="numpy", nogil=True, **options)(function)
    return made
