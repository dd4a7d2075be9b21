"""Scenario `embed`: words per second and quality of word vectors, beside gensim and fastText.

All rows learn skip-gram vectors from the same text with the same dimension, window, subsampling and epochs. gensim and
fastText draw `NEGATIVE` noise words for each pair; Tenor draws its default number for each window, shared by its pairs.
Every repeat has another seed. Words are counted before frequent ones are left out. gensim reads its text from a file,
which is its fastest way. `wordsim` is the Spearman correlation with WordSim-353, `analogies` the share of right answers
to questions-words; both files come with gensim. `memory_mb` is the most memory that all processes of a row had
together, and `speed_up` compares with one worker of the same program.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import itertools
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tenor.bench.measuring import Contender, measure
from tenor.bench.peers.watched import run_watched
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.embedding.questions import score_file
from tenor.embedding.sources import open_text
from tenor.embedding.vectors import load_vectors
from tenor.errors import MissingExtra, UsageError
from tenor.progress import Progress

OPTIONS = ("workers", "rows", "data", "epochs")
PEERS = ("gensim", "fasttext")
SHARED = {"dim": 100, "window": 5, "sample": 1e-4, "lr": 0.025}
NEGATIVE = 5


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Train each contender in a process of its own, in turns, and score its vectors."""
    text = Path(settings.data)
    if not settings.data or not text.is_file():
        raise UsageError("--data must name a text file", remedy="give plain text, such as the start of text8")
    with open_text(text) as stream, (folder / "text").open("wb") as plain:  # not all peers read compressed text
        shutil.copyfileobj(stream, plain)
    text = folder / "text"
    known = {f"{name}-{count}": (name, count) for count in settings.worker_counts() for name in ("tenor", *PEERS)}
    chosen = settings.chosen([name for name, (peer, _) in known.items() if peer == "tenor" or _is_installed(peer)])
    contenders = [
        Contender(name, _run_with_next_seed(*known[name], text, settings.epochs), {"workers": known[name][1]})
        for name in chosen
    ]
    result = measure("embed", contenders, settings.repeats, settings.warmups, progress)
    for row in result.rows:
        for figure in ("wordsim", "analogies"):
            row[f"mean_{figure}"] = statistics.fmean(row["spread"][figure]["values"])
    speeds = {row["name"]: row["words_per_s"] for row in result.rows}
    for row in result.rows:
        others = {"times_gensim": f"gensim-{row['workers']}", "speed_up": f"{known[row['name']][0]}-1"}
        for figure, other in others.items():
            row[figure] = row["words_per_s"] / speeds[other] if other in speeds else None
    return result


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _run_with_next_seed(name: str, workers: int, text: Path, epochs: int) -> Callable[[], Mapping[str, float]]:
    seeds = itertools.count(1)

    def once() -> Mapping[str, float]:
        with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
            out = Path(scratch) / "vectors"
            asked = {**SHARED, "epochs": epochs, "workers": workers, "seed": next(seeds)}
            told = (
                _tenor(text, out, asked) if name == "tenor" else _peer(name, text, out, {**asked, "negative": NEGATIVE})
            )
            return {**told, **scores(out)}

    return once


def _tenor(text: Path, out: Path, asked: Mapping[str, Any]) -> dict[str, float]:
    options = [part for name, value in asked.items() for part in (f"--{name}", str(value))]
    told = run_watched("tenor", "embed", str(text), "--out", str(out), "--json", *options)
    return {name: told[name] for name in ("words_per_s", "loss", "memory_mb") if name in told}


def _peer(name: str, text: Path, out: Path, asked: Mapping[str, Any]) -> dict[str, float]:
    return run_watched("tenor.bench.peers.word_vectors", name, str(text), str(out), json.dumps(asked))


def scores(vectors: Path) -> dict[str, float]:
    """The quality of the vectors in a folder or file."""
    if not _is_installed("gensim"):
        raise MissingExtra("the scenario embed", "peers")
    table, files = load_vectors(vectors), importlib.resources.files("gensim") / "test" / "test_data"
    with (
        importlib.resources.as_file(files / "wordsim353.tsv") as similar,
        importlib.resources.as_file(files / "questions-words.txt") as questions,
    ):
        wordsim, analogies = score_file(table, similar)["spearman"], score_file(table, questions)["accuracy"]
    return {"wordsim": wordsim or 0.0, "analogies": analogies or 0.0}
