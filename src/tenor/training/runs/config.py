"""Read and check the config.json of a run. Imports little, so that any stage can use it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.store.trusted import read_json
from tenor.training.settings import TrainSettings
from tenor.training.traits import TASKS

NAME = "config.json"
FORMAT = 2
MAX_BYTES = 16 << 20
_NEWER = "the run was probably made by a newer version of Tenor; use that version"


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a run folder.

    Raises:
        RunError: The folder is not a run folder, or its config is damaged or of a later format.
    """
    path = folder / NAME
    try:
        config = read_json(path, MAX_BYTES, RunError, file_names=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = f"is not a run folder: it has no {NAME}"
        raise RunError(what, where=folder, remedy="give a folder made by `tenor train`") from error
    if (found := config.get("format", 1)) != FORMAT:
        remedy = "train it again with this version" if found == 1 else _NEWER
        raise RunError(f"has format {found!r:.40}, but this version reads {FORMAT}", where=path, remedy=remedy)
    return config


def stored_settings(settings: TrainSettings) -> dict[str, Any]:
    """The settings as config.json stores them. The number of workers is a string.

    `from_run` is stored only if it is set, so that the config of other runs is the same as in older versions.
    """
    values = {**vars(settings), "workers": str(settings.workers)}
    return values if settings.from_run else {name: value for name, value in values.items() if name != "from_run"}


def read_settings(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a run; unknown ones are refused."""
    settings = config.get("settings", {})
    if not isinstance(settings, dict):
        raise RunError("'settings' is not a JSON object", where=folder / NAME, remedy="train again")
    refuse_unknown(settings, [field.name for field in fields(TrainSettings)], "settings", folder)
    return {"from_run": None, **settings}


def refuse_unknown(values: Mapping[str, Any], known: Collection[str], part: str, folder: Path) -> None:
    """Raise RunError if `values` has a key that this version does not know."""
    for name in values:
        if name not in known:
            raise RunError(f"'{part}' has the unknown key {name!r:.60}", where=folder / NAME, remedy=_NEWER)


def refuse_other_tasks(settings: Mapping[str, Any], folder: Path) -> None:
    """Fail if the run was not trained on reviews."""
    task = settings.get("task", "reviews")
    if task not in [name for name, traits in TASKS.items() if traits.reads_text]:
        remedy = "give a run trained on reviews; the metrics of this run are in its result.json"
        raise RunError(f"was trained on the task {task!r:.40}, which has no texts", where=folder, remedy=remedy)
