"""Scenario `embed`: what its rows are asked, what they are compared with, and the real peers on a small text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.topics import TOPICS, write_topics

import tenor
from tenor.bench.peers import word_vectors
from tenor.bench.scenarios import bench, embed
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT

ASKED = {"dim": 20, "window": 5, "sample": 0.5, "lr": 0.05, "negative": 5, "epochs": 5, "workers": 1, "seed": 1}


def test_all_rows_are_asked_for_the_same_and_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def run(module: str, *words: str) -> dict[str, float]:
        if module == "tenor":
            options = dict(zip(words[5::2], words[6::2], strict=True))
            asked.append(("tenor", {name[2:]: float(value) for name, value in options.items()}))
        else:
            asked.append((words[0], json.loads(words[3])))
        name, values = asked[-1]
        speed = {"tenor": 300.0, "gensim": 100.0, "fasttext": 50.0}[name] * (1 + values["workers"])
        return {"words_per_s": speed, "loss": 0.2, "memory_mb": 1.0}

    monkeypatch.setattr(embed, "run_watched", run)
    monkeypatch.setattr(embed, "scores", lambda out: {"wordsim": 0.1 * asked[-1][1]["seed"], "analogies": 0.0})
    monkeypatch.setattr(embed, "_is_installed", lambda name: True)
    text = tmp_path / "text"
    text.write_text("words")
    result = embed.run(BenchSettings(data=str(text), workers="1,2", epochs=4, repeats=3), tmp_path, SILENT)
    shared = [{name: values[name] for name in ("dim", "window", "sample", "lr", "epochs")} for _, values in asked]
    assert len(asked) == 18 and all(values == shared[0] for values in shared) and shared[0]["epochs"] == 4
    assert {(name, int(values["workers"]), int(values["seed"])) for name, values in asked} == {
        (name, workers, seed) for name in ("tenor", "gensim", "fasttext") for workers in (1, 2) for seed in (1, 2, 3)
    }
    rows = {row["name"]: row for row in result.rows}
    assert rows["tenor-2"]["times_gensim"] == 3.0 and rows["tenor-2"]["speed_up"] == rows["gensim-2"]["speed_up"] == 1.5
    assert rows["fasttext-1"]["times_gensim"] == 0.5 and rows["tenor-1"]["mean_wordsim"] == pytest.approx(0.2)


@pytest.mark.parametrize("name", ["gensim", "fasttext"])
def test_the_peers_learn_the_same_words(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(name)
    text = write_topics(tmp_path / "text", 4000)
    monkeypatch.setattr("sys.argv", ["peer", name, str(text), str(tmp_path / "vectors"), json.dumps(ASKED)])
    word_vectors.main()
    vectors = tenor.load_vectors(tmp_path / "vectors")
    assert set(vectors.words) - {"</s>"} == set(text.read_text().split()) and vectors.matrix.shape[1] == 20
    nearest = [word for word, _ in tenor.neighbours(vectors, ["six"], 5)["six"]]
    assert len(set(nearest) & set(TOPICS["number"])) >= 4, nearest


def test_a_packed_text_is_unpacked_for_all_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[bytes] = []

    def run(module: str, *words: str) -> dict[str, float]:
        given.append(Path(words[words.index("embed" if module == "tenor" else "gensim") + 1]).read_bytes())
        return {"words_per_s": 1.0, "memory_mb": 1.0}

    monkeypatch.setattr(embed, "run_watched", run)
    monkeypatch.setattr(embed, "scores", lambda out: {"wordsim": 0.0, "analogies": 0.0})
    monkeypatch.setattr(embed, "_is_installed", lambda name: True)
    text, scratch = tmp_path / "text.txt.gz", tmp_path / "scratch"
    text.write_bytes(gzip.compress(b"some words\n"))
    scratch.mkdir()
    embed.run(BenchSettings(data=str(text), workers="1", rows="tenor-1,gensim-1", repeats=1), scratch, SILENT)
    assert set(given) == {b"some words\n"} and len(given) >= 2


@pytest.mark.soak
def test_the_whole_scenario(tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    text = write_topics(tmp_path / "text", 4000)
    result = bench("embed", BenchSettings(data=str(text), workers="1", repeats=1))
    assert {row["name"] for row in result.rows} >= {"tenor-1", "gensim-1"}
    assert all(row["words_per_s"] > 0 and row["memory_mb"] > 20 for row in result.rows)


def test_a_text_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data must name a text file"):
        embed.run(BenchSettings(), tmp_path, SILENT)
