"""What is chosen for a user who gives no option, from 500 reviews to millions."""

from __future__ import annotations

import math

import pytest

from tenor.settings import CHOSEN
from tenor.training.recipe import (
    DataFacts,
    choose_batch,
    choose_epochs,
    choose_preset,
    choose_vector_epochs,
    complete,
    vector_seconds,
)
from tenor.training.settings import TrainSettings

DATA = DataFacts(rows=50_000, tokens=4_000_000)


@pytest.mark.parametrize("preset", ["fast", "default", "best"])
@pytest.mark.parametrize("rows", [1, 500, 6_000, 60_000, 3_600_000])
def test_every_setting_has_a_value_at_any_size(preset: str, rows: int) -> None:
    settings = complete(TrainSettings(preset=preset), DataFacts(rows, 80 * rows))
    optional = {"stage", "from_run"}
    assert not [name for name, value in vars(settings).items() if value is CHOSEN and name not in optional]
    assert settings.epochs * math.ceil(rows / settings.batch_size) >= min(2 * rows, 500)  # enough steps


def test_what_the_user_gives_stays() -> None:
    given = TrainSettings(preset="best", cell="gru", hidden=17, epochs=1, embeddings="none", model="deep")
    found = complete(given, DATA)
    assert (found.cell, found.hidden, found.epochs, found.embeddings, found.model) == ("gru", 17, 1, "none", "deep")
    assert found.bidirectional is True  # as a recurrent cell needs it


def test_presets() -> None:
    fast, default, best = (complete(TrainSettings(preset=name), DATA) for name in ("fast", "default", "best"))
    assert (fast.model, default.model, best.model) == ("wide", "wide-deep", "wide-deep")
    assert (fast.embeddings, default.embeddings) == ("none", "auto")
    assert best.hidden > default.hidden and best.epochs > default.epochs
    assert complete(TrainSettings(), DATA) == default
    assert fast.characters == 0 and default.characters == best.characters > 2
    characters = complete(TrainSettings(), DataFacts(50_000, 4_000_000, has_characters=True))
    assert characters.ngrams > default.ngrams and characters.characters == 0


@pytest.mark.parametrize(("seconds", "preset"), [(0, "default"), (2, "fast"), (60, "default"), (7200, "best")])
def test_a_time_limit_chooses_the_preset(seconds: float, preset: str) -> None:
    assert choose_preset(seconds, DATA, cores=2) == preset
    assert complete(TrainSettings(max_seconds=seconds), DATA, cores=2).preset == preset


def test_word_vectors_count_towards_the_time_limit() -> None:
    """4 million words: about 8 s per pass and 64 s for four epochs of `default` on two cores."""
    assert vector_seconds(DATA, 100) == pytest.approx(8.0)
    passes = [complete(TrainSettings(max_seconds=limit), DATA, cores=2).vector_epochs for limit in (0, 3600, 60, 55)]
    assert passes == [5, 5, 2, 2]
    assert choose_preset(50, DATA, 2) == "default" and choose_preset(50, DATA, 2, before=40) == "fast"
    assert choose_preset(500, DATA, 2) == "best" and choose_preset(500, DATA, 2, before=40) == "default"
    for options, preset in (({}, "fast"), ({"embeddings": "none"}, "default"), ({"vector_epochs": 1}, "default")):
        assert complete(TrainSettings(max_seconds=50, **options), DATA, cores=2).preset == preset
    more = DataFacts(50_000, 4_000_000, unlabelled=8_000_000)
    assert complete(TrainSettings(max_seconds=50), more, cores=2).preset == "fast"
    assert complete(TrainSettings(max_seconds=300, preset="best"), more, cores=2).vector_epochs == 4
    assert complete(TrainSettings(max_seconds=9, preset="best", vector_epochs=7), more).vector_epochs == 7


def test_a_rehearsal_has_half_of_the_time() -> None:
    for limit in (50, 60, 500, 540):
        half = complete(TrainSettings(max_seconds=limit), DATA, cores=2)
        whole = complete(TrainSettings(max_seconds=2 * limit, all_rows=True), DATA, cores=2)
        assert (whole.preset, whole.vector_epochs) == (half.preset, half.vector_epochs)


def test_few_rows_are_read_more_often() -> None:
    assert [choose_batch(rows) for rows in (0, 500, 6_000, 60_000, 3_600_000)] == [16, 16, 16, 128, 256]
    assert [choose_epochs(rows, "default") for rows in (500, 6_000, 60_000, 3_600_000)] == [30, 10, 4, 2]
    assert [choose_vector_epochs(tokens) for tokens in (0, 50_000, 4_000_000, 10**7, 10**9)] == [20, 20, 5, 3, 1]
