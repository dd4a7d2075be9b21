"""Typed stages: records survive the way to a worker and back, and values of the wrong type are refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines.typed_stages import Number, square
from helpers.corpora import make_reviews, write_csv
from hypothesis import given
from hypothesis import strategies as st

from tenor.corpus.columns import Wanted
from tenor.corpus.labels import make_rule
from tenor.corpus.pieces import whole
from tenor.corpus.sources import find_sources
from tenor.engines.local import LocalEngine
from tenor.engines.records import from_json, to_json
from tenor.engines.stage import Empty
from tenor.evaluation.sections import LabelledPiece, SplitSection


@dataclass(frozen=True)
class Inner:
    names: frozenset[str]
    counts: dict[str, int]


@dataclass(frozen=True)
class Outer:
    number: int
    share: float
    is_set: bool
    text: str | None
    inner: Inner
    more: tuple[Inner, ...]
    either: Inner | Empty


INNER = st.builds(Inner, st.frozensets(st.text()), st.dictionaries(st.text(), st.integers()))
FLOAT = st.floats(allow_nan=False)
OUTER = st.builds(
    Outer,
    st.integers(),
    FLOAT,
    st.booleans(),
    st.none() | st.text(),
    INNER,
    st.lists(INNER, max_size=3).map(tuple),
    INNER | st.just(Empty()),
)


@given(OUTER)
def test_a_record_is_the_same_after_json(record: Outer) -> None:
    assert from_json(Outer, json.loads(json.dumps(to_json(record)))) == record


def test_the_records_of_other_rooms_are_the_same_after_json(tmp_path: Path) -> None:
    [source] = find_sources([write_csv(tmp_path / "r.csv.gz", make_reviews(5))], Wanted())
    rows = LabelledPiece(whole(source), make_rule("binary", "1,2", "4,5"))
    assert from_json(LabelledPiece, json.loads(json.dumps(to_json(rows)))) == rows
    section = SplitSection("data", "test", 1, 4)
    for record in (rows, section):
        assert from_json(Either, {"rows": to_json(record)}) == Either(record)


@dataclass(frozen=True)
class Either:
    rows: LabelledPiece | SplitSection


@pytest.mark.parametrize(
    "values",
    [
        {"names": ["a"]},  # a field is missing
        {"names": ["a"], "counts": {}, "more": 1},
        {"names": [1], "counts": {}},
        {"names": "a", "counts": {}},
        {"names": ["a"], "counts": {"a": True}},
        {"names": ["a"], "counts": {"a": 1.0}},
        {"names": ["a"], "counts": []},
        [],
    ],
)
def test_values_that_do_not_fit_are_refused(values: object) -> None:
    with pytest.raises(ValueError, match="cannot be read as"):
        from_json(Inner, values)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stage_runs_its_tasks_in_order(workers: int) -> None:
    engine, heard = LocalEngine(workers), list[Number]()
    try:
        results = square.run(engine, [Number(n) for n in range(5)], heard.append)
    finally:
        engine.close()
    assert results == [Number(n * n) for n in range(5)]
    assert sorted(result.value for result in heard) == [n * n for n in range(5)]
