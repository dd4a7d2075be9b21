"""The loop of a server: batches are updates that workers pushed, and the workers hear what it came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tenor.errors import Stopped
from tenor.training.loop import Loop
from tenor.training.slowdown import Pace, Slowdown
from tenor.training.strategies import Asynchronous


@contextmanager
def serving(loop: Loop) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Let the loop serve if it is a server's; gives what to call with the result."""
    server = loop.strategy
    if not isinstance(server, Asynchronous):
        yield lambda result: None
        return
    own = loop.signalled
    loop.feed = server.feed(lambda: loop.cursor.epoch)
    loop.signalled = lambda: own() or server.signal
    loop.pace = Pace(Slowdown(), 0)  # slowness is for those who compute
    try:
        yield lambda result: server.end(result=result)
    except Stopped as error:
        server.end(signal=error.signal)
        raise
    except BaseException as error:
        server.end(failed=str(error) or type(error).__name__)
        raise
