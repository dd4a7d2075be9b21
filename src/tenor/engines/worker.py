"""A local worker process: tasks come as JSON lines on standard input, results leave on standard output."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from typing import Any

from tenor.engines.protocol import call
from tenor.errors import TenorError


def main() -> None:
    """Serve until standard input ends. A parent that dies ends it, so no worker outlives its job."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not mix with the replies
    inbox: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(inbox,), daemon=True).start()
    while True:
        request = json.loads(inbox.get())
        replies.write(json.dumps(_answer(request)) + "\n")
        replies.flush()


def _listen(inbox: queue.Queue[str]) -> None:
    for line in sys.stdin:
        inbox.put(line)
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": call(request["stage"], request["task"])}
    except TenorError as error:
        kind = type(error).__name__
        return {"error": {"kind": kind, "what": error.what, "where": error.where, "remedy": error.remedy}}
    except OSError as error:
        return {"oserror": [error.errno, error.strerror, error.filename and str(error.filename)]}
    except Exception:
        return {"crash": traceback.format_exc()}


if __name__ == "__main__":
    main()
