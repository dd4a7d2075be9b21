"""Finds run folders and summarises each of them in one row. The folders are not trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tenor.errors import RunError, UsageError
from tenor.reports.runs.data import RunData, read_run
from tenor.reports.runs.filters import select, sort_by
from tenor.reports.settings import RunsSettings
from tenor.reports.values import number, readable
from tenor.settings import chosen
from tenor.training.runs.config import NAME as CONFIG

if TYPE_CHECKING:
    from tenor.options import RunsOptions

DEPTH = 3  # levels of folders that are searched below a given one
MOST_FOLDERS = 20_000  # that are looked into


@dataclass(frozen=True)
class RunSummary:
    """One run in a list.

    Attributes:
        run: The run folder.
        state: `finished`, or `unfinished` if the run is still training or was stopped.
        date: When training began, in UTC.
        task: What was learnt.
        model: The parts of the model.
        cell: The cell of the deep part; None if there is none.
        strategy: How the workers combined their updates.
        workers: Number of workers.
        epochs: Completed epochs.
        steps: Updates of the weights.
        train_rows: Rows that the model learned from.
        seconds: Training time, without that of word vectors.
        vector_seconds: Time of learning word vectors before the training.
        samples_per_s: Samples per second.
        valid_accuracy: Accuracy on the validation rows.
        test_accuracy: Accuracy on the test rows.
        test_f1_macro: Macro F1 on the test rows.
        test_auc: AUC on the test rows.
        calibration_error: Expected calibration error on the test rows.
        weights_sha256: Hash of the final weights.
        data_sha256: Hash of the prepared data.
        settings: All settings of the run.
    """

    run: str
    state: str
    date: str | None = None
    task: str | None = None
    model: str | None = None
    cell: str | None = None
    strategy: str | None = None
    workers: int | None = None
    epochs: int | None = None
    steps: int | None = None
    train_rows: int | None = None
    seconds: float | None = None
    vector_seconds: float | None = None
    samples_per_s: float | None = None
    valid_accuracy: float | None = None
    test_accuracy: float | None = None
    test_f1_macro: float | None = None
    test_auc: float | None = None
    calibration_error: float | None = None
    weights_sha256: str | None = None
    data_sha256: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """All figures and settings by name; a figure hides a setting of the same name."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "settings"}
        return {**self.settings, **own}

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values.

        >>> tenor.list_runs(".")[0].as_dict()["test_accuracy"]  # doctest: +SKIP
        0.8716
        """
        return asdict(self)


@dataclass(frozen=True)
class FoundRuns:
    """The runs below some folders, and the folders whose runs could not be read, with the reasons."""

    runs: list[RunSummary]
    skipped: dict[str, str]


def list_runs(
    folders: str | Path | Sequence[str | Path], settings: RunsSettings | None = None, **options: Unpack[RunsOptions]
) -> list[RunSummary]:
    """List the run folders in some folders, up to three levels deep.

    Args:
        folders: A folder or several; each may also be a run folder itself.
        settings: Which runs to list, in which order, and how many.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        One summary per run. Folders that cannot be read are left out.

    Raises:
        UsageError: A folder does not exist, or a setting is wrong.

    >>> [run.run for run in tenor.list_runs(".", sort="-test_accuracy")]  # doctest: +SKIP
    ['run-gru', 'run']
    """
    given = [folders] if isinstance(folders, str | Path) else folders
    return find_runs([Path(folder) for folder in given], chosen(RunsSettings, settings, options)).runs


def find_runs(folders: Sequence[Path], settings: RunsSettings) -> FoundRuns:
    """List the run folders in some folders, and say which could not be read."""
    found: dict[str, RunSummary] = {}
    skipped: dict[str, str] = {}
    for folder in dict.fromkeys(path for given in folders for path in _run_folders(given)):
        try:
            found[str(folder)] = summarise_run(read_run(folder, only_result=True), str(folder))
        except (RunError, OSError) as error:
            skipped[readable(str(folder))] = readable(str(error))
    runs = select(list(found.values()), lambda run: run.values, settings.where)
    runs = sort_by(runs, lambda run: run.values, settings.sort) if settings.sort else runs
    return FoundRuns(runs[: settings.limit or None], skipped)


def summarise_run(run: RunData, folder: str) -> RunSummary:
    """Summarise a run. Values of a wrong type are left out."""
    settings, result = run.settings, run.result
    valid, test = run.metrics("valid"), run.metrics("test")
    last = run.epochs[-1] if run.epochs else {}
    return RunSummary(
        run=folder,
        state="finished" if result else "unfinished",
        date=_text(run.environment.get("date")),
        task=_text(settings.get("task")),
        model=_text(settings.get("model")),
        cell=None if settings.get("model") == "wide" else _text(settings.get("cell")),
        strategy=_text(settings.get("strategy")),
        workers=_whole(result.get("workers") or settings.get("workers")),
        epochs=_whole(result.get("epochs", last.get("epoch"))),
        steps=_whole(result.get("steps", last.get("step"))),
        train_rows=_whole(result.get("train_rows")),
        vector_seconds=number(result.get("vector_seconds")),
        seconds=number(result.get("seconds", last.get("seconds"))),
        samples_per_s=number(result.get("samples_per_s")),
        valid_accuracy=number(valid.get("accuracy")),
        test_accuracy=number(test.get("accuracy")),
        test_f1_macro=number(test.get("f1_macro")),
        test_auc=number(test.get("auc")),
        calibration_error=number(test.get("calibration_error")),
        weights_sha256=_text(result.get("weights_sha256")),
        data_sha256=_text(run.config.get("data_sha256")),
        settings={readable(str(name))[:60]: value for name, value in settings.items()},
    )


def _run_folders(given: Path) -> Iterator[Path]:
    """Yield the run folders in a folder, in the order of their names. Links are not followed, run folders not searched.

    Raises:
        UsageError: The folder does not exist, or has too many folders to search.
    """
    if not given.is_dir():
        remedy = "give run folders, or folders that contain some"
        raise UsageError("is not a folder" if given.exists() else "does not exist", where=given, remedy=remedy)
    level, looked = [given], 0
    for depth in range(DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            looked += 1
            if looked > MOST_FOLDERS:
                what = f"has more than {MOST_FOLDERS:,} folders"
                raise UsageError(what, where=given, remedy="give the folders of the runs")
            if (folder / CONFIG).is_file():
                yield folder
            elif depth < DEPTH:
                below += _folders_in(folder)
        level = below


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:  # a folder of somebody else
        return []
    return [folder / name for name in sorted(found)]


def _text(value: Any) -> str | None:
    return readable(value)[:80] if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    found = number(value)
    return None if found is None else int(found)
