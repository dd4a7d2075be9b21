"""The model in use, and the watcher that replaces it when the run folder changes.

A new model is loaded and used once in a thread before it replaces the old one, so no request waits or fails. A batch
takes the model when it begins and keeps it to its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tenor.errors import TenorError
from tenor.serving.facts import RunFacts, read_facts
from tenor.serving.metrics import ServiceMetrics
from tenor.serving.model import FILES, ServedModel, load_served

log = logging.getLogger("tenor.serving")
Loader: TypeAlias = Callable[[Path, int], ServedModel]
Fingerprint: TypeAlias = tuple[object, ...]


class CurrentModel:
    """The model that new batches use, and what the page shows about it."""

    def __init__(self, run: Path, threads: int, loader: Loader = load_served) -> None:
        self.run, self._threads, self._loader = run, threads, loader
        self.fingerprint = fingerprint_of(run)
        self.model, self.facts = self._load()

    def _load(self) -> tuple[ServedModel, RunFacts]:
        folder = self.run.resolve()  # one folder for all files, also if a link is changed meanwhile
        return self._loader(folder, self._threads), read_facts(folder)

    async def replace(self, fingerprint: Fingerprint) -> None:
        """Load the run folder again, and use it from the next batch on.

        Raises:
            TenorError, OSError: The folder cannot be used. The model in use stays.
        """
        self.fingerprint = fingerprint  # a folder that cannot be used is not tried again until it changes
        self.model, self.facts = await asyncio.get_running_loop().run_in_executor(None, self._load)


def fingerprint_of(run: Path) -> Fingerprint:
    """Changes when a file of the model is written again, or a link to the folder leads elsewhere."""
    folder = run.resolve()
    return (str(folder), *(_state_of(folder / name) for name in FILES))


def _state_of(file: Path) -> tuple[int, ...] | None:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


async def watch(current: CurrentModel, seconds: float, metrics: ServiceMetrics) -> None:
    """Look at the run folder every `seconds`, for ever. A change counts once the folder has not changed between two
    looks, because a folder that is being copied is not complete yet.
    """
    before = current.fingerprint
    while True:
        await asyncio.sleep(seconds)
        now = fingerprint_of(current.run)
        if now == before != current.fingerprint:
            await _replace(current, now, metrics)
        before = now


async def _replace(current: CurrentModel, fingerprint: Fingerprint, metrics: ServiceMetrics) -> None:
    try:
        await current.replace(fingerprint)
    except (TenorError, OSError) as error:
        metrics.reloads.labels("failed").inc()
        log.error("the new model is not used, the old one stays: %s", " ".join(str(error).split()))
    else:
        metrics.reloads.labels("done").inc()
        metrics.on_model(current.model.version)
        log.warning("%s: model %s is in use now", current.run, current.model.version)
