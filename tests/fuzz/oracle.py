"""Run an action in a forked process under limits, and judge what happened."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fuzz.actions import Action
from fuzz.arena import SECRET, Arena, Photograph, changes
from fuzz.hostile_runs import plant_for_process
from fuzz.seeds import Seeds
from helpers.pages import foreign_code

MOST_MEMORY = 500.0  # megabytes of resident memory
MOST_SECONDS = 10.0  # of processor time; a page of plots takes 2 to 5 s beside a dozen busy processes
_MOST_MORE_ADDRESSES = 2 << 30
_LARGEST_FILE = 200 << 20


@dataclass(frozen=True)
class Outcome:
    """The outcome of one command on one case; without `failures`, the command succeeded or refused in one line."""

    action: str
    code: int  # exit code, or the negative number of the signal
    seconds: float
    processor_seconds: float
    megabytes: float
    said: str
    failures: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_action(name: str, action: Action, arena: Arena, seeds: Seeds, seed: int = 0) -> Outcome:
    """Run the action in a forked child and judge the outcome; afterwards, kill everything that the child started."""
    before, began = _look_before(arena), time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(action, arena, seeds, seed)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.monotonic() - began
    is_orphaned = _end_group(pid)
    spent = usage.ru_utime + usage.ru_stime
    code, megabytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
    output, errors = (_text(arena, stream) for stream in ("stdout", "stderr"))
    failures = [*_judge_end(code, errors), *_judge_output(action, code, output, errors)]
    failures += _judge_files(action, arena, before)
    failures += _judge_pages(arena)
    failures += ["left a process"] if is_orphaned else []
    failures += [f"memory: {megabytes:.0f} MB"] if megabytes > MOST_MEMORY else []
    failures += [f"slow: {spent:.1f} s of processor time"] if spent > MOST_SECONDS and action.seconds <= 120 else []
    return Outcome(
        name, code, round(seconds, 3), round(spent, 3), round(megabytes, 1), _last_line(errors), tuple(failures)
    )


def _look_before(arena: Arena) -> Photograph:
    for stream in ("stdout", "stderr"):
        (arena.root / stream).write_bytes(b"")
    return arena.photograph()


def _child(action: Action, arena: Arena, seeds: Seeds, seed: int) -> None:
    """Run the action and exit. As in a script, an exception gives a traceback and exit code 1."""
    code = 1
    try:
        os.setsid()
        _redirect(arena)
        plant_for_process(arena.case, os.getpid())
        _limit(action)
        os.environ.update({"TMPDIR": str(arena.temporary), "HOME": str(arena.root / "home"), **action.variables})
        os.chdir(arena.out)
        code = _perform(action, arena, seeds, seed)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _perform(action: Action, arena: Arena, seeds: Seeds, seed: int) -> int:
    from tenor.errors import TenorError

    if action.argv is None:
        assert action.call is not None
        try:
            action.call(arena, seed)
        except TenorError as error:
            print(f"tenor: {error}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
            return error.exit_code
        return 0
    from tenor import cli

    sys.argv = ["tenor", *map(str, action.argv(arena, seeds))]
    try:
        cli.main()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    return 0


def _redirect(arena: Arena) -> None:
    for number, stream in ((1, "stdout"), (2, "stderr")):
        handle = os.open(arena.root / stream, os.O_WRONLY | os.O_APPEND)
        os.dup2(handle, number)
        os.close(handle)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _limit(action: Action) -> None:
    import tempfile

    tempfile.tempdir = None
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    most = pages * resource.getpagesize() + _MOST_MORE_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (action.processor_seconds, action.processor_seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, action.seconds)


def _end_group(pid: int) -> bool:
    """Kill what the child left running; return whether anything was alive 0.4 s after its end."""
    for _ in range(20):
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return True


def _text(arena: Arena, stream: str) -> str:
    path = arena.root / stream
    with path.open("rb") as file:
        return file.read(1 << 22).decode("utf-8", "replace")


def _judge_end(code: int, errors: str) -> list[str]:
    if code == -signal.SIGALRM:
        return ["hang"]
    if code == -signal.SIGXCPU:
        return ["slow: stopped"]
    if code == -signal.SIGXFSZ:
        return ["file too large"]
    if code < 0:
        return [f"crash: {signal.Signals(-code).name}"]
    if "Traceback" in errors:
        return [f"traceback: {_where(errors)}"]
    return [f"exit code {code}"] if code not in (0, 1, 2) else []


def _where(errors: str) -> str:
    """Return the innermost line of Tenor's code and the error, which identify a failure."""
    places = re.findall(r'File "[^"]*/src/(tenor/[^"]+)", line (\d+)', errors) or [("?", "0")]
    return f"{places[-1][0]}:{places[-1][1]} {_last_line(errors)[:100]}"


def _judge_output(action: Action, code: int, output: str, errors: str) -> list[str]:
    failures = ["another user's file shown"] if SECRET in output + errors else []
    if code == 0 and action.answers:
        texts = output.splitlines() if action.answers == "lines" else [output]
        try:
            for text in texts:
                json.loads(text, parse_constant=_refuse)
        except ValueError as error:
            failures.append(f"not JSON: {error}"[:80])
    if code in (1, 2) and "Traceback" not in errors and not errors.strip():
        failures.append("failed without a word")
    return failures


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} on standard output")


def _judge_files(action: Action, arena: Arena, before: Photograph) -> list[str]:
    allowed = ("stdout", "stderr", "home/", *action.may_change, *_planted(before, arena))
    found = changes(before, arena.photograph(), allowed)
    failures = [f"written outside: {name}" for name in found[:3]]
    left = [path.name for path in arena.temporary.iterdir()]
    for name in left:
        _remove(arena.temporary / name)
    return failures + ([f"left in the temporary folder: {left[0]}"] if left else [])


def _judge_pages(arena: Arena) -> list[str]:
    """Find what the fuzzer wrote into names and texts as a part of a page's own code."""
    pages = [*arena.out.rglob("*.html"), *arena.case.glob("*.html")]
    texts = (page.read_bytes() for page in pages if page.is_file() and not page.is_symlink())
    odd = (text.decode("utf-8", "replace") for text in texts if b"<script>alert(1)" in text or b"onload" in text)
    return ["script in a page"] if any(foreign_code(text) for text in odd) else []


def _planted(before: Photograph, arena: Arena) -> list[str]:
    """Return the links that the fuzzer itself puts into the folder, and the folder with its new time stamp."""
    if "case/.plant" not in before:
        return []
    return ["case", *(f"case/{path.name}" for path in arena.case.glob(".*.tmp"))]


def _remove(path: Path) -> None:
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _last_line(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
