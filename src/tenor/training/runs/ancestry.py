"""What `--from RUN` means for the settings and the data of a new run: RUN decides the architecture and the words.

Settings of the architecture come from RUN and cannot change. Settings that regularise or weigh the loss also come from
RUN unless they are given. All others, such as the number of epochs, are chosen as for any run.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tenor.corpus.labels import STARS
from tenor.errors import RunError, StoreError, UsageError
from tenor.models.spec import ModelSpec
from tenor.progress import Progress
from tenor.settings import CHOSEN, changed, option_name, typed
from tenor.store.manifest import Manifest
from tenor.store.trusted import read_json
from tenor.training.runs.config import MAX_BYTES, NAME, read_config, read_settings, refuse_other_tasks
from tenor.training.runs.spec import read_spec
from tenor.training.settings import TrainSettings

KEPT = ("dropout", "input_dropout", "word_dropout", "label_smoothing", "loss", "class_weights", "optimise")
_MOST_FILES = 5  # named in a proposed command


@dataclass(frozen=True)
class Ancestry:
    """A finished run, as far as its descendants depend on it."""

    run: Path
    config: dict[str, Any]
    spec: ModelSpec
    settings: dict[str, Any]

    @classmethod
    def of(cls, run: Path) -> Ancestry:
        """Read the config of a run folder; RunError if no run can start from it."""
        config = read_config(run)
        settings = read_settings(config, run)
        refuse_other_tasks(settings, run)
        if not (run / "result.json").exists():
            remedy = "finish it with `tenor train … --resume`, or give another run"
            raise RunError("is not finished, so no run can start from it", where=run, remedy=remedy)
        try:
            spec = read_spec(config, run)
            settings = typed(TrainSettings, settings)
        except (ValueError, UsageError) as error:
            what = error.what if isinstance(error, UsageError) else str(error)
            raise RunError(what, where=run / NAME, remedy="train it again") from None
        return cls(run, config, spec, settings)

    def architecture(self) -> dict[str, Any]:
        """The settings that a descendant cannot change."""
        wide, deep = self.spec.wide, self.spec.deep
        model = "wide-deep" if wide and deep else "wide" if wide else "deep"
        found = {"model": model, **{name: self.settings[name] for name in ("preset",) if self.settings.get(name)}}
        if wide:
            found |= {"ngrams": wide.longest, "ngram_bits": wide.bits, "characters": wide.characters}
        if deep:
            names = {field.name for field in fields(deep)} & {field.name for field in fields(TrainSettings)} - set(KEPT)
            found |= {"deep_length": deep.length, **{name: getattr(deep, name) for name in names}}
        return found


def descend(ancestry: Ancestry, settings: TrainSettings, given: Collection[str] | None = None) -> TrainSettings:
    """The settings of a run that starts from another one.

    Args:
        ancestry: The run to start from.
        settings: The settings of this call.
        given: The names of the settings that the user gave. None means those that differ from their defaults.

    Raises:
        RunError: A given setting contradicts the run's architecture.
    """
    asked = changed(settings) if given is None else set(given)
    fixed = ancestry.architecture()
    for name in asked & fixed.keys():
        value = getattr(settings, name)
        if value not in (CHOSEN, fixed[name]) and not (name == "ngram_bits" and value == 0):
            what = f"was trained with {option_name(name)} {fixed[name]}, not {value}"
            remedy = f"omit {option_name(name)}, or train without --from"
            raise RunError(what, where=ancestry.run, remedy=remedy)
    kept = {name: ancestry.settings[name] for name in KEPT if name not in asked and name in ancestry.settings}
    return replace(settings, **kept, **fixed)


def check_descent(ancestry: Ancestry, data: Path, progress: Progress) -> None:
    """Raise StoreError if the data does not have the words and the classes of the run; the remedy is a command."""
    manifest, config = Manifest.load(data), ancestry.config
    facts = (
        ("with another vocabulary", manifest.vocab_sha256, config.get("vocab_sha256")),
        ("with another tokeniser", manifest.tokeniser, config.get("tokeniser")),
        ("with other classes", list(manifest.classes), config.get("classes")),
    )
    for how, found, wanted in facts:
        if found != wanted:
            what = f"was prepared {how} than the data of {ancestry.run}"
            raise StoreError(what, where=data, remedy=f"prepare it again: `{prepare_command(ancestry, data)}`")
    if manifest.text != config.get("text", {}):
        now, then = ("with", "without") if manifest.text else ("without", "with")
        progress.warn(f"{data}: was prepared {now} titles before the texts, the run's data {then} them")


def prepare_command(ancestry: Ancestry, data: Path) -> str:
    """The command that prepares the files of `data` for a descendant of the run."""
    try:
        inputs = read_json(data / "job.json", MAX_BYTES, StoreError, file_names=True).get("inputs")
    except (OSError, StoreError):
        inputs = None
    known = isinstance(inputs, list) and 0 < len(inputs) <= _MOST_FILES and all(type(name) is str for name in inputs)
    words = [*(inputs if known and inputs else ["FILES"]), "--vocab", str(ancestry.run), "--out", f"{data}-again"]
    if tuple(ancestry.config.get("classes", ())) == STARS:
        words += ["--labels", "stars"]
    text = ancestry.config.get("text")
    if isinstance(text, dict) and isinstance(title := text.get("title_column"), str):
        words += ["--title-column", title]
    return shlex.join(["tenor", "prepare", *words])
