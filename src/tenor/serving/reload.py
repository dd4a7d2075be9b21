"""The model in use, and the watcher that replaces it when the run folder changes or its process has ended.

A new model is loaded and used once before it replaces the old one, so no request waits or fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from tenor.errors import TenorError, WorkerError
from tenor.serving.facts import RunFacts, read_facts
from tenor.serving.metrics import ServiceMetrics
from tenor.serving.process.remote import Contribution, RemoteModel, model_files

log = logging.getLogger("tenor.serving")
LOOK_SECONDS = 1.0  # between looks at the process, if the folder is not watched
T = TypeVar("T")
Fingerprint: TypeAlias = tuple[object, ...]


class AnyModel(Protocol):
    """What the service needs of a model; see `RemoteModel`."""

    labels: tuple[str, ...]
    version: str
    threshold: float

    @property
    def is_alive(self) -> bool: ...
    def predict_proba(self, texts: list[str]) -> list[list[float]]: ...
    def explain(self, texts: list[str]) -> list[list[Contribution]]: ...
    def close(self, patience: float = 60.0) -> None: ...


class CurrentModel:
    """The model that new batches use, and what the page shows about it.

    Args:
        run: A run folder, or a link to one.
        threads: Threads that compute.
        loader: Loads the model of a folder.
    """

    def __init__(self, run: Path, threads: int, loader: Callable[[Path, int], AnyModel] = RemoteModel) -> None:
        self.run, self._threads, self._loader = run, threads, loader
        self.fingerprint = fingerprint_of(run)
        self.model, self.facts = self._load()

    def use(self, work: Callable[[AnyModel], T]) -> T:
        """Compute with the model in use; again with the new one if it is replaced at this moment."""
        while True:
            model = self.model
            try:
                return work(model)
            except WorkerError:
                if model is self.model:
                    raise

    async def replace(self, fingerprint: Fingerprint) -> AnyModel:
        """Load the run folder again, and use it from the next batch on.

        Returns:
            The model that was in use, to be closed.

        Raises:
            TenorError, OSError: The folder cannot be used. The model in use stays.
        """
        loop, old = asyncio.get_running_loop(), self.model
        self.fingerprint = fingerprint  # a folder that cannot be used is not tried again until it changes
        self.model, self.facts = await loop.run_in_executor(None, self._load)
        return old

    def _load(self) -> tuple[AnyModel, RunFacts]:
        folder = self.run.resolve()  # one folder for all files, also if a link is changed meanwhile
        facts = read_facts(folder)  # first: nothing can fail after the model has a process
        return self._loader(folder, self._threads), facts


def fingerprint_of(run: Path) -> Fingerprint:
    """Changes when a file of the model is written again, or a link to the folder leads elsewhere."""
    folder = run.resolve()
    return (str(folder), *map(_state_of, model_files(folder)))


def _state_of(file: Path) -> tuple[int, ...] | None:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


async def watch(current: CurrentModel, seconds: float, metrics: ServiceMetrics) -> None:
    """Look at the run folder every `seconds`, for ever; 0 means not to look at the folder, only at the process.

    A change counts once the folder is the same at two looks, because a folder that is being copied is not complete.
    """
    before = current.fingerprint
    while True:
        await asyncio.sleep(seconds or LOOK_SECONDS)
        now = fingerprint_of(current.run) if seconds else before
        if now == before != current.fingerprint or not current.model.is_alive:
            await _replace(current, now, metrics)
        before = now


async def _replace(current: CurrentModel, fingerprint: Fingerprint, metrics: ServiceMetrics) -> None:
    try:
        old = await current.replace(fingerprint)
    except (TenorError, OSError) as error:
        metrics.reloads.labels("failed").inc()
        log.error("tenor: the new model is not used, the old one stays: %s", " ".join(str(error).split()))
    else:
        metrics.reloads.labels("done").inc()
        metrics.on_model(current.model.version)
        log.warning("%s: model %s is in use now", current.run, current.model.version)
        await asyncio.get_running_loop().run_in_executor(None, old.close)
