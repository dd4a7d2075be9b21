"""Child processes that cannot outlive a test: each leads its own process group, which is killed as a whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
SOURCE = TESTS.parent / "src"


def child_environment(**changes: str) -> dict[str, str]:
    """Return the environment of a child that can import `tenor` and the test helpers and prints plain text."""
    path = [str(SOURCE), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(path)}
    return {**os.environ, **plain, **changes}


def describe_exit(code: int) -> str:
    """`exited with code 3` or `was killed by SIGKILL`."""
    if code >= 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def kill_group(process: subprocess.Popen[bytes], wait: float = 5.0) -> bool:
    """Kill what is left of a child's process group; return whether anything but the child itself was alive."""
    orphans = process.poll() is not None and _group_lives(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(wait)
    return orphans


def _group_lives(group: int, patience: float = 1.0) -> bool:
    """Return whether the process group still exists after `patience` seconds, in which grandchildren may end."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    return True


def last_lines(path: Path, count: int = 15) -> str:
    lines = path.read_text("utf-8", "replace").splitlines()[-count:]
    return "\n".join(f"    {line}" for line in lines) or "    (nothing on standard error)"


def python(*args: str) -> list[str]:
    return [sys.executable, "-X", "faulthandler", *args]


@contextlib.contextmanager
def kept_handlers() -> Iterator[None]:
    """Put back what SIGTERM and SIGINT do in this process after the `with` block."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def running(command: list[str], **changes: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a child whose output is captured, and kill it at the end of the `with` block."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=child_environment(**changes), stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[bytes], timeout: float = 120) -> dict[str, Any]:
    """Wait for a command that ran with --json and return its JSON object."""
    stdout, stderr = process.communicate(timeout=timeout)
    assert process.returncode == 0, stderr.decode()
    result: dict[str, Any] = json.loads(stdout)
    return result
