"""Decide what `--resume` does: a finished run stays as it is, any other run continues with its own settings.

A resumed run takes its settings from its config.json. Settings that affect the weights cannot change; settings for
where and how fast it computes can.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tenor.environment import MOST_PER_CORE, usable_cores
from tenor.errors import RunError, UsageError
from tenor.settings import changed, option_name, typed
from tenor.store.manifest import Manifest
from tenor.store.trusted import read_json
from tenor.training.runs.config import MAX_BYTES, NAME, read_config, read_settings
from tenor.training.settings import TrainSettings
from tenor.training.traits import STRATEGIES, owners_of

# Settings that affect neither the weights (except for rounding) nor the order of the rows, and the strategy
MAY_CHANGE = {
    "workers",
    "threads",
    "strategy",
    "device",
    "backend",
    "shares",
    "balance",
    "token_caps",
    "accumulate",
    "slowdown",
    "timeout",
    "stage",
    "checkpoint_steps",
    "keep_checkpoints",
    "max_restarts",
    "max_replacements",
    "tensorboard",
    "profile",
    "test",
    "resume",
}
STOP_RULES = {"max_steps", "max_seconds", "patience"}  # may change until the run is finished
# Of this machine, not of the run: the folder may come from a stranger, who must not choose where copies are written
NOT_INHERITED = {"resume", "stage"}
# Settings that only some strategies use
OWNED = {name: owners_of(name) for traits in STRATEGIES.values() for name in traits.settings}


def inherit(
    run: Path, settings: TrainSettings, given: Collection[str] | None = None, is_launched: bool = False
) -> TrainSettings:
    """The settings to resume a run with: its own, except those that are `given` and those in NOT_INHERITED.

    Args:
        run: The run folder. A folder without config.json has no settings, and `settings` is used.
        settings: The settings of this call.
        given: The names of the settings that the user gave. None means those that differ from their defaults.
        is_launched: Whether a launcher decides how many workers there are.

    Raises:
        RunError: A given setting differs from one that the run cannot change, or the run's own cannot be used.
    """
    if not (run / "config.json").exists():
        return settings
    before, now = _typed(read_settings(read_config(run), run), run), vars(settings)
    asked = changed(settings) if given is None else set(given)
    how = "was finished" if (run / "result.json").exists() else "was started"
    _compare(run, before, {**before, **{name: now[name] for name in asked}}, asked, how)
    own = before.keys() & now.keys() - asked - NOT_INHERITED - _unfit(before, now, asked)
    own -= {"workers"} if is_launched else set()
    _refuse_crowds(run, {name: before[name] for name in own & {"workers", "threads"}})
    return replace(settings, **{name: before[name] for name in own})


def _typed(settings: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """The settings of a run, once all are known to have the types that they need."""
    try:
        return typed(TrainSettings, settings)
    except UsageError as error:
        what, remedy = f"'settings' are damaged: {error.what:.100}", "train again in another folder"
        raise RunError(what, where=run / NAME, remedy=remedy) from None


def _refuse_crowds(run: Path, settings: Mapping[str, Any]) -> None:
    """Raise RunError if a run would start far more processes or threads than this machine has cores."""
    for name, value in settings.items():
        if str(value).isdecimal() and int(str(value)[:10]) > MOST_PER_CORE * usable_cores():
            option = option_name(name)
            what = f"was started with {option} {value!s:.20}, too many for this machine"
            raise RunError(what, where=run, remedy=f"give {option}")


def _unfit(before: Mapping[str, Any], now: Mapping[str, Any], asked: Collection[str]) -> set[str]:
    """The settings of the run that do not apply to the new strategy or number of workers."""
    unfit = set()
    if "strategy" in asked and now["strategy"] != before.get("strategy"):
        traits = STRATEGIES.get(now["strategy"])  # None for `auto`, to which all settings apply
        if traits is not None:
            unfit |= {name for name in OWNED if name not in traits.settings}
            unfit |= set() if traits.is_balanced else {"balance"}
            unfit |= {refusal.setting for refusal in traits.refuses if refusal.value is None}
    if "workers" in asked and str(now["workers"]) != str(before.get("workers")):  # config.json has a string
        unfit |= {name for name in ("shares", "token_caps", "slowdown") if ":" in before.get(name, "")}
    return unfit


def finished_result(run: Path, data: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result of a finished run, or None if the run is not finished.

    Raises:
        RunError: The settings or the data differ from the finished run's, which cannot be trained further.
    """
    if not (run / "result.json").exists():
        return None
    before = read_config(run)
    earlier = _typed(read_settings(before, run), run)
    _compare(run, earlier, settings, settings, "was finished")
    _refuse(run, earlier, settings, ("epochs", *sorted(STOP_RULES)), "was finished")
    if "data_sha256" in before:  # a task without data files has no hash
        _compare_data(run, before, Manifest.load(data).sha256)
    result = read_json(run / "result.json", MAX_BYTES, RunError)
    _check_shown(result, run / "result.json")
    return result


def check_same(run: Path, config: Mapping[str, Any]) -> None:
    """Raise RunError if the data or the settings differ: some rows would be used twice and some never."""
    if not (run / "config.json").exists():
        return
    before = read_config(run)
    _compare(run, _typed(read_settings(before, run), run), config["settings"], config["settings"], "was started")
    _compare_data(run, before, config.get("data_sha256"))
    if before.get("ancestor") != config.get("ancestor"):
        remedy = "put the weights of the first run back, or give another --out"
        raise RunError("started from other weights than --from has now", where=run, remedy=remedy)


def _compare_data(run: Path, before: Mapping[str, Any], now: str | None) -> None:
    if before.get("data_sha256") != now:
        raise RunError("was trained on other data", where=run, remedy="give the data of the run, or another --out")


def _compare(run: Path, before: Mapping[str, Any], now: Mapping[str, Any], names: Collection[str], how: str) -> None:
    """Raise RunError if a setting changes that affects the weights.

    More epochs are allowed if the learning rate does not depend on their number.
    """
    free = MAY_CHANGE | STOP_RULES
    if before.get("strategy") != now.get("strategy"):
        free = free | OWNED.keys()
    if before.get("decay") == "none" and now["epochs"] >= before["epochs"]:
        free = free | {"epochs"}
    known = (field.name for field in fields(TrainSettings))
    _refuse(run, before, now, (name for name in known if name in names and name not in free), how)


def _refuse(run: Path, before: Mapping[str, Any], now: Mapping[str, Any], names: Iterable[str], how: str) -> None:
    for name in names:
        if name in before and before[name] != now[name]:
            option = option_name(name)
            what = f"{how} with {option} {before[name]}, not {now[name]}"
            raise RunError(what, where=run, remedy=f"omit {option}, or give another --out")


def _check_shown(result: Mapping[str, Any], file: Path) -> None:
    """Raise RunError if a figure that the command shows again is not a number."""
    figures = {name: result.get(name) for name in ("steps", "seconds", "samples_per_s")}
    figures |= {name: result[name] for name in ("train_rows", "vector_seconds") if name in result}
    for split in ("valid", "test"):
        if not isinstance(measured := result.get(split), dict):
            raise RunError(f"'{split}' is not a JSON object", where=file, remedy="train again in another folder")
        if measured:
            base = measured.get("majority_baseline")
            base = base if isinstance(base, dict) else {}
            names = ("rows", "accuracy", "f1_macro", "f1_weighted", "auc")
            figures |= {f"{split} {name}": measured.get(name) for name in names}
            figures |= {f"{split} baseline {name}": base.get(name) for name in names[1:]}
            if measured.get("auc", 0) is None:  # only one class occurs
                del figures[f"{split} auc"]
    for name, value in figures.items():
        if type(value) not in (int, float):
            raise RunError(f"{name} is {value!r:.40}, not a number", where=file, remedy="train again in another folder")
