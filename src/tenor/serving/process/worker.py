"""The process that computes: loads a run folder, then answers lists of texts that arrive on its standard input.

A process of its own keeps the service responsive: computing and loading a model would otherwise hold Python's
interpreter lock for as long as the event loop needs it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tenor.serving.process.messages import read_message, write_message


def main(run: str, threads: str) -> None:
    """Load the run folder, tell the service its labels, and answer until the service closes the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the service stops this process once it has its last answer
        signal.signal(number, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else can write among the replies
    from tenor.errors import TenorError
    from tenor.serving.process.model import load_served

    try:
        model = load_served(Path(run), int(threads))
    except TenorError as error:
        write_message(replies, {"error": error.to_dict()})
        return
    write_message(replies, {"labels": model.labels, "version": model.version, "threshold": model.threshold})
    work = {"predict": lambda texts: model.predict_proba(texts).tolist(), "explain": model.explain}
    while True:
        try:
            task = read_message(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_message(replies, {"rows": work[task["do"]](task["texts"])})
        except TenorError as error:
            write_message(replies, {"error": error.to_dict()})


if __name__ == "__main__":
    main(*sys.argv[1:])
