"""One worker process: `python -m tenor.embedding.workers.worker`, which reads its job as a line of JSON.

It trains over the shared tables, always on the next block of words that no worker has taken. It ends when no block is
left, when it is asked to stop, or when its standard input closes, so it cannot outlive the process that started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np

from tenor.embedding.kernels.means import train_block_of_means
from tenor.embedding.kernels.noise import keep_thresholds, noise_table
from tenor.embedding.kernels.windows import train_block
from tenor.embedding.sources import Nameless, open_blocks
from tenor.embedding.workers.division import Division
from tenor.embedding.workers.tables import BLOCKS, IS_READY, LOSS, NUM_LOSSES, Tables

WAIT_SECONDS = 0.001  # between two looks at whether the machines have averaged their vectors
LAST_RATE = 1e-4  # of the first: the learning rate at the end


def main() -> None:
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch, daemon=True).start()
    work(job)
    os._exit(0)  # the watcher still waits in a read that nothing interrupts


def work(job: dict[str, Any]) -> None:
    """Train until all blocks of all epochs are taken, and wait where machines average their vectors."""
    rank, division, settings = job["rank"], Division(**job["division"]), job["settings"]
    num_words = job["num_words"]
    tables = Tables(job["num_inputs"], num_words, settings["dim"], division.size, job["tables"])
    blocks = open_blocks(job["blocks"])
    counts = Nameless(job["counts"]).read(0, 2 * num_words).view(np.int64)
    keep, noise = keep_thresholds(counts, settings["sample"]), noise_table(counts)
    own = tables.counters[rank]
    total = settings["epochs"] * blocks.num_blocks
    train: Any = train_block
    more: tuple[Any, ...] = ()
    if job["rows"] is not None:
        rows = Nameless(job["rows"])
        starts = rows.read(0, 2 * (num_words + 1)).view(np.int64)
        is_cbow = settings["model"] == "cbow"
        train, more = train_block_of_means, (is_cbow, starts, rows.read(2 * (num_words + 1), int(starts[-1])))
    _load_compiled(train, tables, keep, noise, more)
    own[IS_READY] = 1.0
    while (number := division.block(tables.take())) < total:
        while number >= tables.limit and not tables.is_stopped:
            time.sleep(WAIT_SECONDS)
        if tables.is_stopped:
            break
        rates = np.array([rate_at(settings["lr"], place / total) for place in (number, number + 1)])
        loss, num_losses = train(
            blocks.block(number % blocks.num_blocks),
            tables.inputs,
            tables.outputs,
            keep,
            noise,
            generator(settings["seed"], number),
            settings["window"],
            settings["negative"],
            rates,
            *more,
        )
        own[LOSS] += loss
        own[NUM_LOSSES] += num_losses
        own[BLOCKS] += 1


def _load_compiled(train: Any, tables: Tables, keep: Any, noise: Any, more: Any) -> None:
    """Load the compiled loop, or compile it the first time, apart from any work: no word changes nothing."""
    none, rates = np.empty(0, np.int32), np.zeros(2)
    train(none, tables.inputs, tables.outputs, keep, noise, generator(0, 0), 1, 1, rates, *more)


def rate_at(first: float, done: float) -> float:
    """The learning rate after the share `done` of all words: a line from `first` to almost nothing."""
    return first * max(LAST_RATE, 1.0 - done)


def generator(seed: int, number: int) -> np.ndarray[Any, Any]:
    """The random generator of one block: the same whoever trains on it, and after a resume too."""
    state = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)
    return state | np.uint64(1)  # xorshift needs a number that is not 0


def _watch() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
