"""Word vectors that several ranks train together: real processes over gloo on loopback, and under mpirun."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.mpi import MPI_VARIABLES, mpirun, needs_mpi
from helpers.processes import finish, python, running
from helpers.topics import EMBED_OPTIONS, EMBED_SETTINGS, TOPICS

import tenor
from tenor.embedding.embed import fill_first_vectors
from tenor.embedding.kernels.noise import keep_thresholds, noise_table
from tenor.embedding.kernels.windows import train_block
from tenor.embedding.sources import BLOCK_WORDS, read_words
from tenor.embedding.vectors import load_vectors
from tenor.embedding.workers.worker import generator, rate_at

EPOCHS = 6
SETTINGS = tenor.EmbedSettings(**EMBED_SETTINGS, epochs=EPOCHS, workers=1, average_words=BLOCK_WORDS)


def embed(text: Path, out: Path, *options: str, workers: int = 1, epochs: int = EPOCHS) -> list[str]:
    given = ("--workers", str(workers), "--epochs", str(epochs), "--average-words", str(BLOCK_WORDS), *EMBED_OPTIONS)
    return python("-m", "tenor", "embed", str(text), "--out", str(out), "--json", *given, *options)


@contextlib.contextmanager
def ranks(folder: Path, *commands: list[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start one command per rank, as torchrun does; the ranks meet at a file."""
    meeting = f"file://{folder / f'meeting-{time.monotonic_ns()}'}"
    size = str(len(commands))
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                running(command, RANK=str(rank), WORLD_SIZE=size, LOCAL_WORLD_SIZE=size, TENOR_RENDEZVOUS=meeting)
            )
            for rank, command in enumerate(commands)
        ]


def run_two(folder: Path, command: list[str]) -> dict[str, Any]:
    with ranks(folder, command, command) as (first, second):
        result = finish(first)
        said, _ = second.communicate(timeout=60)
        assert second.returncode == 0 and said == b"", "rank 0 speaks for all"
    return result


def reference(text: Path, num_ranks: int, epochs: int = EPOCHS) -> np.ndarray:
    """The same in one process: each rank has a table of its own, and after each round all get the mean."""
    words, blocks = read_words(text, SETTINGS.min_count, 0)
    with contextlib.closing(blocks):
        keep, noise = keep_thresholds(words.counts, SETTINGS.sample), noise_table(words.counts)
        tables = [np.zeros((2, len(words.words), SETTINGS.dim), np.float32) for _ in range(num_ranks)]
        for table in tables:
            fill_first_vectors(table[0], SETTINGS.seed)
        total = epochs * blocks.num_blocks
        for begin in range(0, total, num_ranks):
            for number in range(begin, min(begin + num_ranks, total)):
                rates = np.array([rate_at(num_ranks * SETTINGS.lr, n / total) for n in (number, number + 1)])
                chosen = (keep, noise, generator(SETTINGS.seed, number), SETTINGS.window, SETTINGS.negative, rates)
                train_block(blocks.block(number % blocks.num_blocks), *tables[number % num_ranks], *chosen)
            tables = [np.mean(tables, axis=0, dtype=np.float32) for _ in tables]
    return tables[0][0]


def test_two_ranks_train_as_two_tables_that_are_averaged(text: Path, tmp_path: Path) -> None:
    result = run_two(tmp_path, embed(text, tmp_path / "out", "--backend", "gloo"))
    assert (result["workers"], result["ranks"]) == (2, 2) and 0 < result["loss"] < 0.5
    np.testing.assert_allclose(load_vectors(tmp_path / "out").matrix, reference(text, 2), rtol=1e-5, atol=1e-6)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "README.md",
        "config.json",
        "vectors.safetensors",
        "vocab.json",
    ]


@needs_mpi
@pytest.mark.soak  # the same ranks meet through a file in the test before
def test_mpirun_gives_the_same_vectors(text: Path, tmp_path: Path) -> None:
    with running(mpirun(2, *embed(text, tmp_path / "out")), **MPI_VARIABLES) as process:
        assert finish(process)["ranks"] == 2
    np.testing.assert_allclose(load_vectors(tmp_path / "out").matrix, reference(text, 2), rtol=1e-5, atol=1e-6)


@pytest.mark.soak
def test_ranks_with_several_workers_each_learn_the_topics(text: Path, tmp_path: Path) -> None:
    command = embed(text, tmp_path / "out", workers=2, epochs=10)
    assert run_two(tmp_path, command)["workers"] == 4
    for words in TOPICS.values():
        for word, nearest in tenor.neighbours(tmp_path / "out", words, count=5).items():
            assert len({name for name, _ in nearest} & set(words)) >= 4, (word, nearest)


def wait_for_checkpoint(out: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 100
    while not (out / "checkpoint" / "progress.json").exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.01)


def test_a_signal_to_one_rank_stops_all_and_a_resumed_training_ends_as_if_undisturbed(
    text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = embed(text, out, epochs=24)
    with ranks(tmp_path, *[[*command, "--checkpoint-seconds", "0.01"]] * 2) as processes:
        wait_for_checkpoint(out, processes[0])
        processes[1].send_signal(signal.SIGTERM)
        said = [process.communicate(timeout=60)[1] for process in processes]
        assert [process.returncode for process in processes] == [143, 143], said
    assert b"saved a checkpoint; --resume continues from it" in said[0]
    done = json.loads((out / "checkpoint" / "progress.json").read_text())["blocks"]
    assert 0 < done < 48, "the test shows nothing"
    run_two(tmp_path, [*command, "--resume"])
    np.testing.assert_allclose(load_vectors(out).matrix, reference(text, 2, epochs=24), rtol=1e-5, atol=1e-6)


@pytest.mark.soak
def test_a_lost_rank_ends_the_others(text: Path, tmp_path: Path) -> None:
    command = embed(text, tmp_path / "out", "--checkpoint-seconds", "0.01", epochs=1000)
    with ranks(tmp_path, command, command) as (first, second):
        wait_for_checkpoint(tmp_path / "out", first)
        second.kill()
        _, said = first.communicate(timeout=60)
    assert first.returncode == 1, said
    assert any(words in said for words in (b"lost contact with the other workers", b"worker 1 is gone")), said


@needs_mpi
@pytest.mark.soak
def test_a_killed_worker_of_one_rank_ends_mpirun(text: Path, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    command = embed(text, tmp_path / "out", "--checkpoint-seconds", "0.01", epochs=1000)
    with running(mpirun(2, *command), **MPI_VARIABLES) as process:
        wait_for_checkpoint(tmp_path / "out", process)
        family = psutil.Process(process.pid).children(recursive=True)
        workers = [one for one in family if "tenor.embedding.workers.worker" in one.cmdline()]
        assert len(workers) == 2
        workers[1].kill()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and b"worker 0 was killed by SIGKILL; continue with --resume" in said
