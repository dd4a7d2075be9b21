"""A worker process of the local engine: reads tasks from standard input and writes replies to standard output.

Tasks and replies are JSON, one per line.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading

from tenor.engines.protocol import answer


def main() -> None:
    """Run tasks until standard input ends. It ends when the parent dies, so no worker outlives its job."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # lines that a library prints must not mix with the replies
    inbox: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(inbox,), daemon=True).start()
    while True:
        request = json.loads(inbox.get())
        replies.write(json.dumps(answer(request["stage"], request["task"])) + "\n")
        replies.flush()


def _listen(inbox: queue.Queue[str]) -> None:
    for line in sys.stdin:
        inbox.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
