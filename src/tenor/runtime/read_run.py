"""Read a run folder. It may come from a stranger, so every value is checked before anything is built from it.

Nothing here loads torch: weights are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tenor.errors import RunError, StoreError
from tenor.models.arrays import Array, read_arrays
from tenor.models.spec import ModelSpec, weight_shapes
from tenor.models.wide.characters import Characters, hash_characters
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.tokenise import TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, Vocabulary, refuse_long_words
from tenor.preparation.tokeniser.words import are_words
from tenor.training.runs.config import NAME, read_config, read_settings, refuse_other_tasks, refuse_unknown
from tenor.training.runs.spec import INT64, read_integer, read_object, read_spec

_MAX_NAME_LENGTH = 1000  # characters of a class name or a rating


@dataclass(frozen=True)
class RunContents:
    """What a run folder holds: everything that a model needs to predict."""

    spec: ModelSpec
    encoder: Encoder
    weights: dict[str, Array]  # by their names in the model's state_dict
    config: dict[str, Any]  # the content of config.json

    @property
    def characters(self) -> Characters:
        """The character n-grams of the vocabulary's words, as far as the model reads them."""
        return hash_characters(
            self.encoder.vocabulary.words, FIRST_WORD, self.spec.wide.characters if self.spec.wide else 0
        )


def read_run(folder: Path) -> RunContents:
    """Read the weights, the encoder and the config of a run folder.

    Raises:
        RunError: Something in the folder is missing, damaged or not allowed.
    """
    config = read_config(folder)
    try:
        spec = check_config(config, folder)
    except ValueError as error:
        raise RunError(str(error), where=folder / NAME, remedy="train it again") from None
    weights = _read_weights(folder, spec)
    return RunContents(spec, make_encoder(_read_vocabulary(folder), spec, config, folder), weights, config)


def check_config(config: Mapping[str, Any], where: Path) -> ModelSpec:
    """The architecture in a config, once everything that a model needs of it is known to be allowed.

    Raises:
        RunError, ValueError: Something is not allowed.
    """
    refuse_other_tasks(read_settings(config, where), where)
    spec = read_spec(config, where)
    _check_classes(config, spec.num_classes)
    read_integer(config, "max_length", 1, INT64)
    tokeniser = read_object(config, "tokeniser")
    refuse_unknown(tokeniser, [field.name for field in fields(TokeniserSettings)], "tokeniser", where)
    TokeniserSettings.from_dict(tokeniser)
    return spec


def make_encoder(vocabulary: Vocabulary, spec: ModelSpec, config: Mapping[str, Any], where: Path) -> Encoder:
    """The encoder of a model whose config has been checked; RunError if the vocabulary is that of another model."""
    has_other_size = spec.deep is not None and len(vocabulary) != spec.deep.vocab_size
    if vocabulary.sha256 != config.get("vocab_sha256") or has_other_size:
        raise RunError("vocab.json is not the vocabulary of the model", where=where, remedy="train it again")
    refuse_long_words(vocabulary, RunError, where, "train it again")
    return Encoder(vocabulary, config["tokeniser"], config["max_length"])


def _check_classes(config: Mapping[str, Any], num_classes: int) -> None:
    """Check the names of the classes and the ratings of each class, which runs of older versions do not have."""
    classes = config.get("classes")
    if not isinstance(classes, list) or not _are_words(classes):
        raise ValueError("'classes' is not a list of different names")
    if len(classes) != num_classes:
        raise ValueError(f"'classes' has {len(classes)} names, but the model has {num_classes} classes")
    labels = config.get("labels")
    if labels is not None and not (
        isinstance(labels, dict) and list(labels) == classes and all(_are_words(found) for found in labels.values())
    ):
        raise ValueError("'labels' does not list the ratings of each class")


def _are_words(value: Any) -> bool:
    """Whether the value is a list of different words of at most _MAX_NAME_LENGTH characters."""
    if not isinstance(value, list) or not are_words(value):
        return False
    return len(set(value)) == len(value) and all(len(word) <= _MAX_NAME_LENGTH for word in value)


def _read_weights(folder: Path, spec: ModelSpec) -> dict[str, Array]:
    try:
        return read_arrays(folder / "model.safetensors", weight_shapes(spec))
    except FileNotFoundError as error:
        remedy = "finish its training with `tenor train … --resume`, or give another run"
        raise RunError("model.safetensors is missing", where=folder, remedy=remedy) from error


def _read_vocabulary(folder: Path) -> Vocabulary:
    try:
        return Vocabulary.load(folder / "vocab.json")
    except StoreError as error:
        raise RunError(error.what, where=error.where, remedy="copy the run folder again, or train again") from error
