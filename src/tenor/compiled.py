"""Compiles functions with numba when they are first called, and caches the machine code on disk, if that is writable.

Importing numba takes longer than predicting a few texts without it. So a decorated function is a stand-in until it is
called: a module with compiled functions can be imported without numba.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
_lock = threading.RLock()
_budget = 50_000  # characters or tokens that Python handles in about the time in which numba is imported


def compiled(function: F) -> F:
    """Compile `function` on first use. Without a writable cache folder, every process compiles it again."""
    return cast(F, Later(function, _compile))


def inlined(function: F) -> F:
    """Compile a function that hot loops call. Inlining avoids the atomic reference counts of its array arguments."""
    return cast(F, Later(function, functools.partial(_compile, forceinline=True)))


def fast_compiled(function: F) -> F:
    """The same for sums of floats whose order may change: four times as fast, equal to rounding."""
    return cast(F, Later(function, functools.partial(_compile, fastmath=True)))


def fast_inlined(function: F) -> F:
    """The same as `inlined`, for sums of floats whose order may change."""
    return cast(F, Later(function, functools.partial(_compile, forceinline=True, fastmath=True)))


def intrinsic(function: Callable[..., Any]) -> Any:
    """An operation in LLVM's terms that compiled functions call; see numba's `intrinsic`."""
    return Later(function, _make_intrinsic)


def is_loaded() -> bool:
    """Whether numba is imported, so that a compiled function costs little to call."""
    return "numba" in sys.modules


def fits_budget(size: int) -> bool:
    """Whether some work is so small that it is done in Python and NumPy, which start without numba.

    A process has a budget for such work. When it is used up, numba is worth its import; and once numba is imported,
    compiled code is faster for every size.

    Args:
        size: Characters or tokens of the work.
    """
    return size <= _budget and not is_loaded()


def is_small(size: int) -> bool:
    """The same, and takes the work from the budget."""
    global _budget  # noqa: PLW0603 - whether numba is imported is a matter of the process, too
    if not fits_budget(size):
        _budget = 0
        return False
    _budget -= size
    return True


def is_kept(function: Any) -> bool:
    """Return whether numba's disk cache holds the current version of `function`, compiled for this processor."""
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    if file is None:  # no cache folder is writable
        return False
    processor = function.targetctx.codegen().magic_tuple()
    return any(key[1] == processor for key in file._load_index())


class Later:
    """Stands for a function until it is called or one of its attributes is read; then numba makes the real one."""

    def __init__(self, function: Callable[..., Any], make: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._make, self._made = function, make, None

    def __call__(self, *values: Any) -> Any:
        return (self._made or self.made())(*values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as those by which a pickler asks what this object can do
            raise AttributeError(name)
        return getattr(self.made(), name)

    def __reduce__(self) -> str:
        return self._function.__qualname__  # workers import the function from its module

    def made(self) -> Any:
        """The real function. It is compiled for the types of its arguments when it is called."""
        with _lock:
            if self._made is None:
                self._made = self._make(self._function)
                _replace_stand_ins(self._function)
        return self._made


def _replace_stand_ins(function: Callable[..., Any]) -> None:
    """Let the function's module name the real functions that it calls, because numba does not know stand-ins."""
    names: dict[str, Any] = function.__globals__
    for name in function.__code__.co_names:
        if isinstance(found := names.get(name), Later):
            names[name] = found.made()


class LaterModule:
    """A module that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def _make_intrinsic(function: Callable[..., Any]) -> Any:
    from numba.extending import intrinsic as make

    return make(function)


def _compile(function: Callable[..., Any], **options: bool) -> Any:
    from numba import njit

    try:
        return njit(cache=True, error_model="numpy", nogil=True, **options)(function)
    except RuntimeError:  # numba found neither a writable __pycache__ nor a user cache folder
        return njit(error_model="numpy", nogil=True, **options)(function)
