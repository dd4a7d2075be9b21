"""The examples in docstrings run: the self-contained ones as doctests, those of the public names on small data."""

from __future__ import annotations

import doctest
import importlib
import inspect
import shutil
import subprocess
from pathlib import Path
from typing import Any

import api_reference
import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import SOURCE, child_environment, python

import tenor

MODULES = [file for file in sorted((SOURCE / "tenor").rglob("*.py")) if ">>> " in file.read_text("utf-8")]
SMALL = "tenor.TrainSettings(hidden=8, embedding_dim=8, epochs=1, workers=1, threads=1)"
START = f"""
import shutil, tenor
tenor.prepare("reviews.jsonl.gz", "data")
tenor.train("data", "run", {SMALL})
shutil.copytree("run", "run-gru")
tenor.embed("text8", "vectors", tenor.EmbedSettings(dim=10, workers=1, epochs=1, min_count=1))
"""
MADE = {"tenor.prepare(": "data", "tenor.train(": "run", "tenor.embed(": "vectors"}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_self_contained_examples_give_what_they_show(file: Path) -> None:
    name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    result = doctest.testmod(importlib.import_module(name))
    assert (result.failed, result.attempted > 0) == (0, True) or _all_skipped(file)


def _all_skipped(file: Path) -> bool:
    lines = [line for line in file.read_text("utf-8").splitlines() if line.lstrip().startswith(">>> ")]
    return all("# doctest: +SKIP" in line for line in lines)


def _examples() -> dict[str, str]:
    """The examples of the public names as Python code."""
    found: dict[str, Any] = {"tenor": tenor}
    for name in tenor.__all__:
        value = getattr(tenor, name)
        found[name] = value
        if inspect.isclass(value):
            found |= {f"{name}.{method}": function for method, function in api_reference.public_methods(value)}
    parser = doctest.DocTestParser()
    words = {name: inspect.getdoc(value) or "" for name, value in found.items() if name != "__version__"}
    code = {name: "".join(example.source for example in parser.get_examples(text)) for name, text in words.items()}
    return {name: text for name, text in code.items() if "tenor." in text}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples read."""
    folder = tmp_path_factory.mktemp("reader")
    reviews = make_reviews(300)
    write_json_lines(folder / "reviews.jsonl.gz", reviews)
    (folder / "text8").write_text(" ".join(review.text for review in reviews) + " six seven five the The good\n" * 20)
    _run(START, folder)
    return folder


def _run(code: str, folder: Path) -> None:
    command, environment = python("-c", code), child_environment()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, f"{code}\n{done.stderr.decode()[-2000:]}"


@pytest.mark.soak
@pytest.mark.parametrize("name", _examples())
def test_an_example_of_a_public_name_runs(name: str, reader: Path, tmp_path: Path) -> None:
    code = _examples()[name]
    made = [folder for call, folder in MADE.items() if call in code]
    folder = shutil.copytree(reader, tmp_path / "reader", ignore=shutil.ignore_patterns(*made))
    _run(f"import tenor\n{code}", folder)
