"""Options of `tenor train` that have no effect are refused, once everything that the user left open is chosen."""

from __future__ import annotations

from collections.abc import Collection

from tenor.errors import UsageError
from tenor.models.deep.cells import CELLS
from tenor.settings import CHOSEN, either, option_name
from tenor.training.settings import NO_VECTORS, OWN_VECTORS, TrainSettings
from tenor.training.traits import TASKS

OF_WIDE = ("ngrams", "characters", "ngram_bits", "wide_lr")
OF_DEEP = (
    *("cell", "deep_length", "embedding_dim", "hidden", "layers", "window", "bidirectional", "pooling", "lr"),
    *("dropout", "input_dropout", "word_dropout", "label_smoothing"),
    *("embeddings", "vector_epochs", "freeze_embeddings"),
    *("optimizer", "momentum", "weight_decay"),  # the wide part has a rule of its own
)
OF_REVIEWS = ("preset", "model", "negation_rows", "optimise")  # of models of reviews, whatever their parts
ALWAYS = ("embeddings", "freeze_embeddings")  # to leave them out would change the model that a user expects


def refuse_without_effect(asked: TrainSettings, settings: TrainSettings, given: Collection[str]) -> None:
    """Raise UsageError if an option was given that the model ignores.

    Args:
        asked: The settings of the user.
        settings: The same with a value for everything, see `recipe.complete`.
        given: The names of the options that were given one by one. Other values in `asked` may come from a settings
            object that serves several models; of these, only ALWAYS are checked.
    """
    for name in (*OF_REVIEWS, *OF_WIDE, *OF_DEEP):
        value = getattr(asked, name)
        if not value or value == NO_VECTORS or (name not in given and name not in ALWAYS):
            continue
        if found := _reason(name, asked, settings):
            why, remedy = found
            option = option_name(name)
            what = f"{option}{'' if value is True else f' {value}'} has no effect with {why}"
            raise UsageError(what, remedy=f"{f'{remedy}, or ' if remedy else ''}omit {option}")


def ignored(settings: TrainSettings) -> set[str]:
    """The options that have no effect beside these settings, which have a value for everything."""
    return {name for name in (*OF_REVIEWS, *OF_WIDE, *OF_DEEP) if _reason(name, settings, settings)}


def _reason(name: str, asked: TrainSettings, settings: TrainSettings) -> tuple[str, str] | None:
    """What makes the option useless, and how to give it an effect; None if it has one."""
    if (used := TASKS[settings.task].model_settings) is not None:
        return None if name in used else (f"--task {settings.task}", "")
    missing = {"deep": "wide", "wide": "deep"}.get(settings.model)
    if missing and name in (OF_WIDE if missing == "wide" else OF_DEEP):
        return _without_part(missing, asked, settings)
    if name == "window" and not CELLS[settings.cell].has_window:
        having = either([cell for cell, traits in CELLS.items() if traits.has_window])
        return f"--cell {settings.cell}", "" if settings.from_run else f"use --cell {having}"
    if (name == "vector_epochs" and settings.embeddings != OWN_VECTORS) or (
        name == "freeze_embeddings" and settings.embeddings == NO_VECTORS and not settings.from_run
    ):
        return _without_vectors(settings)
    return None


def _without_part(part: str, asked: TrainSettings, settings: TrainSettings) -> tuple[str, str]:
    if settings.from_run:
        return f"--from {settings.from_run}, a model without a {part} part", ""
    if asked.model is CHOSEN:
        limit = f", which --max-seconds {asked.max_seconds:g} leads to" if asked.preset is CHOSEN else ""
        return f"--preset {settings.preset}, a model without a {part} part{limit}", "add --model wide-deep"
    return f"--model {settings.model}, a model without a {part} part", "use --model wide-deep"


def _without_vectors(settings: TrainSettings) -> tuple[str, str]:
    if settings.from_run:
        return "--from, which starts from the run's word vectors", ""
    return f"--embeddings {settings.embeddings}", f"use --embeddings {OWN_VECTORS}"
