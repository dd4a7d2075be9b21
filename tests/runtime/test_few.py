"""Few texts are predicted without numba, and give what compiled code gives; a process that works more changes over."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers.models import WORDS, write_model

import tenor
from tenor import compiled
from tenor.models.spec import WideSpec
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.store.ragged import copy_rows

TEXTS = [
    *("", "  ", "not good film", "zzz", "Not! a BAD plot?? &amp; cafe\u0301 good", "good\u00adfilm \ud800 don’t 👍"),
    *(" ".join([*WORDS, "other"][n % 6] for n in range(start, start + size)) for start, size in ((0, 7), (3, 1000))),
]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As in a process that has not imported numba, with work left that Python does."""
    monkeypatch.setattr(compiled, "is_loaded", lambda: False)
    monkeypatch.setattr(compiled, "_budget", 1 << 30)
    return monkeypatch


@pytest.mark.parametrize(
    "changes",
    [
        {"cell": "conv", "pooling": "max"},
        {"cell": "gru", "num_classes": 3},
        {"cell": "conv", "pooling": "max", "wide": WideSpec(8, 2, 4)},
    ],
    ids=str,
)
def test_few_texts_are_as_many(tmp_path: Path, few: pytest.MonkeyPatch, changes: dict[str, object]) -> None:
    run = write_model(tmp_path / "run", **changes)  # type: ignore[arg-type]
    model = tenor.load(run)
    alone = model.predict_proba(TEXTS), model.explain(TEXTS[4]), model.contributions(TEXTS)
    few.undo()
    assert compiled.is_loaded() or copy_rows.made()
    many = model.predict_proba(TEXTS), model.explain(TEXTS[4]), model.contributions(TEXTS)
    np.testing.assert_allclose(alone[0], many[0], atol=1e-7)
    np.testing.assert_allclose([p.contribution for p in alone[1]], [p.contribution for p in many[1]], atol=1e-7)
    for name in ("starts", "firsts", "sizes", "values"):
        np.testing.assert_array_equal(getattr(alone[2].found, name), getattr(many[2].found, name))


@pytest.mark.parametrize("units", ["words", "characters"])
def test_tokens_are_the_same_in_python(units: str, few: pytest.MonkeyPatch) -> None:
    words = ["good", "don't", "é", "👍", "!", "g", "o", "的", *map(chr, range(0x5B57, 0x5B5F))]
    settings = {"clean": "words", "marks": True, "stopwords": ["film"], "units": units}
    encoder = Encoder(Vocabulary(words), settings, 9)
    texts = [
        *TEXTS,
        "的字 good的",
        "字" * 70,
        *(a + b for a, b in itertools.product(("x!", "'", "<b>", "é"), repeat=2)),
    ]
    found = encoder(texts)
    few.undo()
    copy_rows.made()  # type: ignore[attr-defined] # numba is imported
    for own, other in zip(found, encoder(texts), strict=True):
        np.testing.assert_array_equal(own, other)


def test_work_beyond_the_budget_is_compiled(few: pytest.MonkeyPatch) -> None:
    few.setattr(compiled, "_budget", 100)
    assert compiled.fits_budget(100) and not compiled.fits_budget(101)
    assert compiled.is_small(60) and not compiled.is_small(60)
    assert not compiled.is_small(1)  # once it was used up, everything is compiled


def test_a_stand_in_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(copy_rows)) is copy_rows
