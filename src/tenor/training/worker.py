"""One local worker process: `python -m tenor.training.worker JOB`, with its rank in the environment.

Rank 0 tells its events as JSON lines on standard output. A worker ends when its standard input closes, so it cannot
outlive whoever started it. Errors are left in a file beside the job, to be raised again by the launcher.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

import torch

from tenor.errors import RunError, TenorError
from tenor.training.job import Job
from tenor.training.rank import train_as
from tenor.world import detect


def main() -> None:
    signalled = listen()
    job_file = Path(sys.argv[1])
    watch_input(sys.stdin, job_file.parent)
    world = detect()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    try:
        train_as(world, Job.from_json(job_file.read_text("utf-8")), _tell, signalled)
    except TenorError as error:
        _leave_word(job_file.with_name(f"error-{world.rank}.json"), error)
    except OSError as error:
        remedy = "mend it (a full disk wants space) and go on with --resume"
        lost = RunError(f"cannot go on: {error.strerror or error}", where=error.filename, remedy=remedy)
        _leave_word(job_file.with_name(f"error-{world.rank}.json"), lost)
    os._exit(0)  # the input watcher still waits in a read that no shutdown interrupts


def listen() -> Callable[[], int]:
    """Catch SIGTERM and SIGINT; the returned function gives the first that came, or 0."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda came, _: received.append(came))
    return lambda: received[0] if received else 0


def watch_input(stream: TextIO, scratch: Path) -> None:
    """End this process when whoever started it is gone, and tidy up what it left."""

    def wait() -> None:
        stream.read()
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, name="tenor-watch", daemon=True).start()


def _tell(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def _leave_word(file: Path, error: TenorError) -> NoReturn:
    told = {"kind": type(error).__name__, "what": error.what, "where": error.where, "remedy": error.remedy}
    file.write_text(json.dumps({**told, "signal": getattr(error, "signal", 0)}), "utf-8")
    os._exit(error.exit_code)  # a group that lost a member cannot be closed in order


if __name__ == "__main__":
    main()
