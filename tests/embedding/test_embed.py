"""Training word vectors from end to end: what is learned, resumed, refused and left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.command import call_tenor, run_tenor
from helpers.processes import python, running
from helpers.topics import EMBED_OPTIONS as OPTIONS
from helpers.topics import EMBED_SETTINGS, TOPICS

import tenor
from tenor.embedding.embed import embed_as
from tenor.embedding.vectors import load_vectors
from tenor.errors import CorpusError, RunError, UsageError
from tenor.progress import SILENT
from tenor.world import World

SMALL = {**EMBED_SETTINGS, "epochs": 6}


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_words_that_stand_in_the_same_places_become_neighbours(text: Path, tmp_path: Path, model: str) -> None:
    settings = tenor.EmbedSettings(model=model, workers=2, **SMALL)
    result = tenor.embed(text, tmp_path / "vectors", settings).as_dict()
    assert result["words"] == 24_000 * 8 and result["words_per_s"] > 0 and 0 < result["loss"] < 1
    for words in TOPICS.values():
        for word, nearest in tenor.neighbours(tmp_path / "vectors", words, count=5).items():
            assert len({name for name, _ in nearest} & set(words)) >= 4, (word, nearest)


def vectors_of(folder: Path) -> np.ndarray:
    return load_vectors(folder).matrix


def test_one_worker_gives_the_same_vectors_again_and_another_seed_others(text: Path, tmp_path: Path) -> None:
    """Words are counted before frequent ones are left out."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        settings = tenor.EmbedSettings(workers=1, seed=seed, **{**SMALL, "epochs": 1, "sample": 1e-3})
        result = tenor.embed(text, tmp_path / name, settings).values
        assert result["words_per_s"] * result["seconds"] == pytest.approx(24_000 * 8)
    assert vectors_of(tmp_path / "a").tobytes() == vectors_of(tmp_path / "b").tobytes()
    assert vectors_of(tmp_path / "a").tobytes() != vectors_of(tmp_path / "c").tobytes()


def started(text: Path, out: Path, *options: str) -> list[str]:
    given = ("--out", str(out), "--json", "--checkpoint-seconds", "0.05", "--workers", "1", *OPTIONS, *options)
    return python("-m", "tenor", "embed", str(text), *given)


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[float, np.ndarray]:
    """The loss and the vectors of a training that nothing disturbs."""
    out = tmp_path_factory.mktemp("whole") / "vectors"
    result = tenor.embed(text, out, tenor.EmbedSettings(**EMBED_SETTINGS, epochs=20, workers=1))
    return result.values["loss"], vectors_of(out)


def wait_for_checkpoint(out: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 100
    while not (out / "checkpoint" / "progress.json").exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_training_continues(text: Path, tmp_path: Path, whole: tuple[float, np.ndarray], number: int) -> None:
    """After a signal that saves, one worker ends with the same bits: each block has its own random numbers. After
    kill -9 it continues from tables that were copied within a block, so the loss alone is the same."""
    out = tmp_path / "out"
    with running(started(text, out, "--epochs", "20")) as process:
        wait_for_checkpoint(out, process)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == (143 if number == signal.SIGTERM else -9)
        assert number == signal.SIGKILL or b"saved a checkpoint; --resume continues from it" in said
        assert not (out / "config.json").exists()
    (out / ".vectors.safetensors.0123.tmp").write_bytes(b"half of it")  # as if killed while the vectors are saved
    resumed = tenor.EmbedSettings(**EMBED_SETTINGS, epochs=20, workers=1, resume=True)
    result = tenor.embed(text, out, resumed)
    assert result.values["loss"] == pytest.approx(whole[0], rel=0.01)
    if number == signal.SIGTERM:
        assert vectors_of(out).tobytes() == whole[1].tobytes()
    left = sorted(file.name for file in out.iterdir())
    assert left == ["README.md", "config.json", "vectors.safetensors", "vocab.json"]


def test_a_time_limit_ends_the_training_early(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = tenor.EmbedSettings(**{**SMALL, "epochs": 100_000, "workers": 1})
    result = embed_as(World(), text, out, settings, SILENT, max_seconds=0.1).values
    assert 0.1 <= result["seconds"] < 60 and 0 < result["words_per_s"] < 100_000 * result["words"]
    assert np.isfinite(tenor.load_vectors(out).matrix).all() and not (out / "checkpoint").exists()


def test_a_checkpoint_of_other_settings_or_text_is_refused(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running(started(text, out, "--epochs", "200")) as process:
        wait_for_checkpoint(out, process)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    other = tmp_path / "other.txt"
    other.write_text(text.read_text() + "\nmore more words words")
    resumed = {**SMALL, "epochs": 200, "workers": 1, "resume": True}
    with pytest.raises(RunError, match="begun with another window"):
        tenor.embed(text, out, tenor.EmbedSettings(**{**resumed, "window": 3}))
    with pytest.raises(RunError, match="begun with another text"):
        tenor.embed(other, out, tenor.EmbedSettings(**resumed))
    with pytest.raises(UsageError, match="is not empty"):
        tenor.embed(text, out, tenor.EmbedSettings(**{**resumed, "resume": False}))


def test_a_killed_worker_is_named(text: Path, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    out = tmp_path / "out"
    with running(started(text, out, "--epochs", "1000")) as process:
        wait_for_checkpoint(out, process)
        (worker,) = psutil.Process(process.pid).children()
        os.kill(worker.pid, signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and b"worker 0 was killed by SIGKILL; continue with --resume" in said


def test_the_commands(text: Path, tmp_path: Path) -> None:
    out, questions = tmp_path / "vectors", tmp_path / "similar.tsv"
    questions.write_text("one two nine\n")
    refused = run_tenor("embed", str(text), "--out", str(out), "--evaluate", str(questions)).failed(2)
    assert "has neither two words and a number" in refused and not out.exists()  # before any training
    questions.write_text("one two 9\none red 1\nred blue 8\n")
    result = (
        run_tenor(
            *("embed", str(text), "--out", str(out), "--workers", "2", "--epochs", "1", *OPTIONS),
            *("--evaluate", str(questions), "--json"),
        )
        .ok()
        .json
    )
    assert {"words", "words_per_s", "seconds", "loss"} <= set(result)
    assert result["evaluation"]["similar.tsv"]["questions"] == 3
    nearest = call_tenor("neighbours", str(out), "six", "may", "--count", "3", "--json").failed(2)
    assert "there is no vector for 'may'" in nearest
    nearest = call_tenor("neighbours", str(out), "six", "--count", "3", "--json").ok().json
    assert set(nearest) == {"six"} and len(nearest["six"]) == 3 and len(nearest["six"][0]) == 2
    call_tenor("export", str(out), "--format", "fasttext", "--out", str(tmp_path / "v.vec")).ok()
    again = call_tenor("neighbours", str(tmp_path / "v.vec"), "six", "--count", "3", "--json").ok().json
    assert [word for word, _ in again["six"]] == [word for word, _ in nearest["six"]]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("dim", 0),
        ("dim", 10**6),
        ("window", 0),
        ("negative", 0),
        ("epochs", 0),
        ("lr", -1.0),
        ("workers", "none"),
        ("model", "x"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: str, value: object) -> None:
    with pytest.raises(UsageError, match=setting):
        tenor.EmbedSettings(**{setting: value})


@pytest.mark.parametrize("content", [b"", b"one", b"\x00\x01garbage", b"\xff\xfe", b"\x1f\x8b\x08broken", b"a b c"])
def test_a_refused_text_leaves_nothing_behind(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises((UsageError, CorpusError), match="text: "):
        tenor.embed(tmp_path / "text", tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


@pytest.mark.parametrize(
    "change",
    [
        {"dim": 17},
        {"dim": 10**9},
        {"dim": "16"},
        {"num_words": 1},
        {"num_words": 10**12},
        {"kind": "other"},
        {"format": 2},
        {"vocab_sha256": "0" * 64},
    ],
)
def test_a_folder_whose_configuration_lies_is_refused(text: Path, tmp_path: Path, change: dict[str, object]) -> None:
    from tenor.embedding.vectors import Vectors, save_vectors

    words = tuple(f"w{n}" for n in range(30))
    settings = tenor.EmbedSettings(dim=16)
    save_vectors(tmp_path, Vectors(words, np.ones((30, 16), np.float32)), vars(settings), {"words": 30, "loss": 0.1})
    assert load_vectors(tmp_path).matrix.shape == (30, 16)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(RunError):
        load_vectors(tmp_path)
