"""Settings as keywords of the public functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import options
import pytest

import tenor
from tenor.errors import UsageError
from tenor.settings import chosen


def test_the_types_for_editors_are_those_of_the_settings() -> None:
    assert options.MODULE.read_text("utf-8") == options.render(), "run `make docs`"


def test_keywords_make_settings() -> None:
    found = chosen(tenor.TrainSettings, None, {"epochs": np.int64(3), "lr": 1, "stage": Path("/fast")})
    assert found == tenor.TrainSettings(epochs=3, lr=1.0, stage="/fast")
    assert type(found.epochs) is int
    assert type(found.lr) is float


def test_keywords_override_the_object() -> None:
    base = tenor.TrainSettings(epochs=3, cell="gru")
    assert chosen(tenor.TrainSettings, base, {"epochs": 5}) == tenor.TrainSettings(epochs=5, cell="gru")
    assert chosen(tenor.TrainSettings, base, {}) == base


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epoch", 1, "there is no setting 'epoch'; did you mean 'epochs'?"),
        ("zzz", 1, "known settings are accumulate"),
        ("epochs", "3", "epochs cannot be '3'; give a whole number"),
        ("epochs", True, "epochs cannot be True"),
        ("epochs", 0, "epochs cannot be 0; give a number above 0"),
        ("cell", "lstn", "cell cannot be 'lstn'; choose one of"),
    ],
)
def test_wrong_keywords_say_what_is_right(name: str, value: object, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        chosen(tenor.TrainSettings, None, {name: value})
    assert message in str(refused.value)


def test_other_objects_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be of the type PrepareSettings"):
        tenor.train("data", "run", tenor.PrepareSettings())  # type: ignore[arg-type]


def test_every_function_with_settings_takes_keywords(tmp_path: Path) -> None:
    assert tenor.generate(tmp_path / "reviews.jsonl", rows=20, seed=3).rows == 20
    before = tenor.generate(tmp_path / "again.jsonl", tenor.GenerateSettings(rows=20, seed=3))
    assert (tmp_path / "reviews.jsonl").read_bytes() == Path(before.out).read_bytes()
    wrong = {"colour": 1}
    for call in (
        lambda: tenor.generate("out", **wrong),
        lambda: tenor.prepare("files", "out", **wrong),
        lambda: tenor.train("data", "run", **wrong),
        lambda: tenor.evaluate("run", "data", **wrong),
        lambda: tenor.predict("run", "files", "out", **wrong),
        lambda: tenor.embed("data", "out", **wrong),
        lambda: tenor.find_insights("run", "files", **wrong),
        lambda: tenor.measure_drift("run", "files", **wrong),
        lambda: tenor.list_runs(".", **wrong),
        lambda: tenor.compare_runs("run", "run", **wrong),
        lambda: tenor.report("run", **wrong),
    ):
        with pytest.raises(UsageError, match="there is no setting 'colour'"):
            call()
