"""One local worker process: `python -m tenor.training.launching.worker JOB`, with its rank in the environment.

Rank 0 writes its events as JSON lines to standard output. A worker ends when its standard input closes, so it cannot
outlive the launcher. A worker that fails writes its error to a file beside the job, and the launcher raises it again.
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
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.world import detect


def main() -> None:
    stop_signal = listen()
    job_file = Path(sys.argv[1])
    watch_input(sys.stdin, job_file.parent)
    world = detect()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    error_file = job_file.with_name(f"error-{world.rank}.json")
    try:
        train_as(world, TrainingJob.from_json(job_file.read_text("utf-8")), _print_event, stop_signal)
    except TenorError as error:
        _leave_with(error, error_file)
    except OSError as error:
        remedy = "fix the cause (for example, free some disk space) and continue with --resume"
        lost = RunError(f"cannot continue: {error.strerror or error}", where=error.filename, remedy=remedy)
        _leave_with(lost, error_file)
    os._exit(0)  # a normal exit would wait for the thread that reads standard input


def listen() -> Callable[[], int]:
    """Catch SIGTERM and SIGINT. Returns a function that gives the first signal that came, or 0."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda came, _: received.append(came))
    return lambda: received[0] if received else 0


def watch_input(stream: TextIO, scratch: Path) -> None:
    """End this process when its launcher has ended, and remove the launcher's scratch folder."""

    def wait() -> None:
        stream.read()
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, name="tenor-watch", daemon=True).start()


def _print_event(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def _leave_with(error: TenorError, file: Path) -> NoReturn:
    """Write the error down for the launcher and end at once: a group that lost a member cannot be closed in order."""
    file.write_text(json.dumps(error.to_dict()), "utf-8")
    os._exit(error.exit_code)


if __name__ == "__main__":
    main()
