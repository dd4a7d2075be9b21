"""Scenario `embed`: words per second and quality of word vectors, beside gensim and fastText.

All rows learn skip-gram vectors from the same text with the same dimension, window, subsampling and epochs. gensim and
fastText draw `NEGATIVE` noise words for each pair; Tenor draws its default number for each window, shared by its pairs.
Every repeat has another seed. `wordsim` is the Spearman correlation with WordSim-353, `analogies` the share of right
answers to questions-words; both files come with gensim.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.embedding.questions import score_file
from tenor.embedding.vectors import load_vectors
from tenor.errors import MissingExtra, UsageError
from tenor.progress import Progress

OPTIONS = ("workers", "rows", "data", "epochs")
PEERS = ("gensim", "fasttext")
SHARED = {"dim": 100, "window": 5, "sample": 1e-4}
NEGATIVE = 5


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Train each contender in a process of its own, in turns, and score its vectors."""
    text = Path(settings.data)
    if not settings.data or not text.is_file():
        raise UsageError("--data must name a text file", remedy="give plain text, such as the start of text8")
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
        peer = speeds.get(f"gensim-{row['workers']}")
        row["times_gensim"] = row["words_per_s"] / peer if peer else None
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
    command = [sys.executable, "-m", "tenor", "embed", str(text), "--out", str(out), "--json", *options]
    result = json.loads(_output(command))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"words_per_s": result["words_per_s"], "loss": result["loss"], "memory_mb": memory}


def _peer(name: str, text: Path, out: Path, asked: Mapping[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-m", "tenor.bench.peers.word_vectors", name, str(text), str(out), json.dumps(asked)]
    told: dict[str, float] = json.loads(_output(command))
    return told


def _output(command: list[str]) -> bytes:
    path = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    if ran.returncode:
        raise UsageError(f"{command[2]} failed: {ran.stderr.decode('utf-8', 'replace')[-300:]}")
    return ran.stdout


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
