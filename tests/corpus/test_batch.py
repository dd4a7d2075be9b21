"""Arrow arrays made without `pa.array`, compared with those that it makes; and no pandas in a process that prepares."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from helpers.corpora import make_reviews, write_csv, write_json_lines
from helpers.processes import child_environment, python
from hypothesis import given
from hypothesis import strategies as st

from tenor.corpus.batch import indices_of, integers_of, strings_of


@given(st.lists(st.text()))
def test_strings(texts: list[str]) -> None:
    values = [text.encode("utf-8", "replace") for text in texts]
    found = strings_of(values)
    found.validate(full=True)
    assert found.equals(pa.array([value.decode() for value in values], pa.large_string()))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 3))
def test_integers(values: list[int], step: int) -> None:
    array = np.array(values, np.int64)[::step]
    assert integers_of(array).equals(pa.array(array))


@given(st.lists(st.sampled_from("abc"), min_size=1), st.data())
def test_indices_also_of_a_slice(values: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values) - 1))
    encoded = pa.array(values).dictionary_encode()[start:]
    assert indices_of(encoded).tolist() == encoded.indices.to_pylist()


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_preparing_does_not_import_pandas(suffix: str, tmp_path: Path) -> None:
    write = write_csv if suffix == "csv" else write_json_lines
    write(tmp_path / f"reviews.{suffix}", make_reviews(60))
    code = f"import sys, tenor; tenor.prepare('reviews.{suffix}', 'data', tenor.PrepareSettings(workers=1))"
    look = python("-c", f"{code}; print('pandas' in sys.modules)")
    done = subprocess.run(look, cwd=tmp_path, env=child_environment(), capture_output=True, timeout=120, check=True)
    assert done.stdout.split()[-1] == b"False"
