"""Settings: the same forms in Python, in TOML and on the command line; shared ones are declared once and inherited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.command import call_tenor

import tenor
from tenor.corpus.settings import ReadingSettings
from tenor.engines.settings import EngineSettings
from tenor.environment import num_workers, usable_cores
from tenor.errors import UsageError
from tenor.settings import build, field_names

WITH_WORKERS = [tenor.TrainSettings, tenor.PrepareSettings, tenor.PredictSettings, tenor.EvaluateSettings]


@pytest.mark.parametrize("kind", WITH_WORKERS)
def test_workers_are_a_number_or_auto_everywhere(kind: Any, tmp_path: Path) -> None:
    assert [kind(workers=value).workers for value in (2, "2", "auto")] == [2, 2, "auto"]
    for written, value in (("2", 2), ('"2"', 2), ('"auto"', "auto")):
        (tmp_path / "settings.toml").write_text(f"workers = {written}\n")
        assert build(kind, {}, tmp_path / "settings.toml").workers == value
    for value in (0, -1, True, 1.5, "two", "0", "²", ""):
        with pytest.raises(UsageError, match=f"^workers cannot be {value}; give a whole number of at least 1, or auto"):
            kind(workers=value)


def test_auto_is_one_worker_per_core() -> None:
    assert (num_workers("auto"), num_workers(3)) == (usable_cores(), 3)


@pytest.mark.parametrize("name", ["train", "prepare", "predict", "evaluate"])
def test_the_command_line_names_the_option(name: str, tmp_path: Path) -> None:
    places = {"train": ["data"], "prepare": ["raw"], "predict": ["run", "raw"], "evaluate": ["run", "raw"]}[name]
    out = [] if name == "evaluate" else ["--out", tmp_path / "out"]
    said = call_tenor(name, *places, *out, "--workers", "0").failed(2)
    assert said.startswith("tenor: --workers cannot be 0; ")


def test_shared_settings_are_inherited() -> None:
    assert issubclass(tenor.PrepareSettings, EngineSettings) and issubclass(tenor.PredictSettings, EngineSettings)
    assert all(issubclass(kind, ReadingSettings) for kind in WITH_WORKERS[1:])
    assert field_names(EngineSettings) | field_names(ReadingSettings) <= field_names(tenor.PredictSettings)


def test_the_order_in_a_job_key_is_pinned() -> None:
    """Another order would give the same job another key, and a finished folder would be refused."""
    columns = ("text_column", "label_column", "title_column", "format", "delimiter", "encoding")
    rules = (
        "labels",
        "negative",
        "positive",
        "clean",
        "tokens",
        "stopwords",
        "marks",
        "negation",
        "vocab_size",
        "vocab",
        "max_length",
    )
    splits = ("dedupe", "valid_share", "test_share", "split_seed")
    assert tenor.PrepareSettings().result_fields == columns + rules + splits


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("cells = 'gru'", "has the unknown setting 'cells'; known settings are "),
        ("epochs = 'three'", "epochs cannot be 'three'; give a whole number"),
        ("epochs = true", "epochs cannot be True; give a whole number"),
        ("embeddings = 3", "embeddings cannot be 3; give a string"),
        ("cell = 'transformer'", "cell cannot be 'transformer'; choose one of lstm"),
        ("epochs =", "is not valid TOML: "),
    ],
)
def test_a_wrong_toml_file_is_explained(line: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(line)
    with pytest.raises(UsageError) as error:
        build(tenor.TrainSettings, {}, tmp_path / "settings.toml")
    assert told in str(error.value)
