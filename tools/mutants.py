"""Checks that the tests find mistakes: applies each wrong change in tests/mutants/*.toml and runs its tests.

`python tools/mutants.py` (or `make mutants`) first runs all named tests on the unchanged code, where they must pass.
Then it applies one change (a mutant) after another to a copy of the tree and runs its tests. A mutant is:

    killed      if a test failed or reached the time limit: the tests find this mistake
    survived    if all its tests passed: a test is missing
    broken      if it cannot be judged: its old text does not occur exactly once, or its tests do not exist, or they
                fail without the change

The exit code is 1 if any mutant survived or is broken.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
FIELDS = {"name", "file", "old", "new", "tests"}
NOT_COPIED = (".git", ".venv", ".mypy_cache", ".ruff_cache", ".hypothesis", "build", "dist", "demo-run")
_STAMPS = itertools.count(10)  # seconds
PASSED, FAILED = 0, 1  # pytest's exit codes
# Imported once per slot, because importing takes longer than most tests. Code of the tree changes and is not listed.
PRELOADED = ("numpy", "torch", "torch._dynamo", "numba", "pyarrow", "h5py", "safetensors.torch", "psutil")


@dataclass(frozen=True)
class Mutant:
    """One small wrong change, and its tests; at least one of them must fail with the change."""

    name: str
    file: str  # relative to the root of the tree, like the tests
    old: str
    new: str
    tests: tuple[str, ...]  # files or node ids of pytest; a test without [parameters] means all its parameters


@dataclass(frozen=True)
class Outcome:
    """The verdict on one mutant."""

    mutant: Mutant
    verdict: str  # killed, survived or broken
    seconds: float = 0.0
    reason: str = ""

    def __str__(self) -> str:
        line = f"{self.verdict:<9}{self.seconds:6.1f} s  {self.mutant.name}"
        return f"{line} ({self.reason})" if self.reason else line


@dataclass(frozen=True)
class Baseline:
    """The named tests on the unchanged code: those that exist, and those that passed in time."""

    found: frozenset[str]
    passed: frozenset[str]

    def problem(self, mutant: Mutant) -> str:
        """Return why the tests of a mutant cannot judge it; empty if they can."""
        for test in mutant.tests:
            chosen = {one for one in self.found if is_chosen(one, test)}
            if not chosen:
                return f"{test} is not a test"
            if failed := sorted(chosen - self.passed):
                return f"{failed[0]} fails without the change"
        return ""


def load_mutants(folder: Path) -> list[Mutant]:
    """Return all entries of the TOML files in a folder, in order.

    Raises:
        ValueError: An entry lacks a field or has an unknown one, or a name occurs twice.
    """
    found: dict[str, Mutant] = {}
    for file in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(file.read_text("utf-8")).get("mutant", []):
            if set(entry) != FIELDS or not entry["tests"]:
                raise ValueError(f"{file}: a mutant needs {', '.join(sorted(FIELDS))}, and at least one test: {entry}")
            if entry["name"] in found:
                raise ValueError(f"{file}: there are two mutants named {entry['name']!r}")
            found[entry["name"]] = Mutant(**{**entry, "tests": tuple(entry["tests"])})
    return list(found.values())


def text_problem(root: Path, mutant: Mutant) -> str:
    """Return why the change cannot be applied; empty if it can."""
    file = root / mutant.file
    if not file.is_file():
        return f"{mutant.file} does not exist"
    text = file.read_text("utf-8")
    if (count := text.count(mutant.old)) != 1:
        return f"its old text occurs {count} times in {mutant.file}"
    if mutant.new == mutant.old:
        return "it changes nothing"
    try:
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"its new text is not Python: {error}"
    return ""


def is_chosen(test: str, requested: str) -> bool:
    """Return whether a node id is the requested test, or one of its parameters, or in the requested file."""
    return test == requested or test.startswith((f"{requested}[", f"{requested}::"))


class Slot:
    """A copy of the tree, and a server process that forks for each run of pytest in this copy."""

    def __init__(self, root: Path, folder: Path, preloaded: Sequence[str]) -> None:
        self.folder = folder
        # The copy keeps the times of the files, so that the caches of Python and numba stay valid
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        command = [sys.executable, __file__, "--serve", *preloaded]
        pipes = subprocess.PIPE
        self.server = subprocess.Popen(  # in a separate process group, which is killed as a whole
            command, cwd=folder, env=environment, stdin=pipes, stdout=pipes, text=True, process_group=0
        )

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.communicate()

    def pytest(self, arguments: Sequence[str], timeout: float, count: int = 1, **variables: str) -> tuple[int, str]:
        """Run pytest and return its exit code and output. A test fails after `timeout` seconds."""
        options = ["--verbosity=-1", "-p", "no:cacheprovider", "-p", "no:xdist", f"--timeout={timeout:g}"]
        output = self.folder.with_suffix(".txt")
        request = {
            "arguments": [*options, *arguments],
            "variables": variables,
            "output": str(output),
            "seconds": 60 + 2 * timeout * count,
        }
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that runs pytest in {self.folder} has ended unexpectedly")
        return int(answer), output.read_text("utf-8", "replace")


def serve(preloaded: Sequence[str]) -> None:
    """Fork for each line of standard input, run pytest in the child, and print its exit code."""
    for name in ("pytest", *preloaded):
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become_pytest(request["arguments"], request["variables"], request["output"])
        print(_wait(child, request["seconds"]), flush=True)


def _become_pytest(arguments: list[str], variables: dict[str, str], output: str) -> NoReturn:
    code = 70
    try:
        for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
            os.dup2(os.open(output if number else os.devnull, flags), number)
        os.dup2(1, 2)
        os.environ.update(variables)
        sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in variables
        sys.path[0], sys.argv = str(Path.cwd()), ["pytest"]
        code = int(importlib.import_module("pytest").main(arguments))
        sys.stdout.flush()
    finally:
        os._exit(code)


def _wait(child: int, seconds: float) -> int:
    """Return the exit code of a child. A pytest that exceeds all time limits counts as failed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return FAILED


def check(
    root: Path, mutants: Sequence[Mutant], jobs: int, timeout: float, preloaded: Sequence[str] = ()
) -> Iterator[Outcome]:
    """Yield the outcome of each mutant as soon as it is known. The original tree is not changed."""
    problems = {mutant.name: text_problem(root, mutant) for mutant in mutants}
    valid = [mutant for mutant in mutants if not problems[mutant.name]]
    yield from (Outcome(mutant, "broken", 0.0, problems[mutant.name]) for mutant in mutants if mutant not in valid)
    if not valid:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
        pool = stack.enter_context(
            ThreadPoolExecutor(jobs)
        )  # opened before the slots: closing a slot frees its threads
        slots = [stack.enter_context(Slot(root, folder / f"slot-{number}", preloaded)) for number in range(jobs)]
        baseline = _run_unchanged(slots, pool, valid, timeout)
        free: queue.Queue[Slot] = queue.Queue()
        for slot in slots:
            free.put(slot)
        futures = [pool.submit(_judge, free, mutant, baseline, timeout) for mutant in valid]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _run_unchanged(
    slots: Sequence[Slot], pool: ThreadPoolExecutor, mutants: Iterable[Mutant], timeout: float
) -> Baseline:
    """Run all named tests once on the unchanged code. Each slot runs some of the files, which fills its caches."""
    requested = sorted({test for mutant in mutants for test in mutant.tests})
    files = sorted({test.partition("::")[0] for test in requested})
    files = [file for file in files if (slots[0].folder / file).is_file()]
    listed = slots[0].pytest(["--collect-only", *files], timeout)[1].splitlines() if files else []
    found = {line for line in listed if "::" in line}
    chosen = sorted(one for one in found if any(is_chosen(one, test) for test in requested))
    home = {file: slots[number % len(slots)] for number, file in enumerate(files)}
    assigned = [[one for one in chosen if home[one.partition("::")[0]] == slot] for slot in slots]
    passed = pool.map(lambda slot, tests: _passed(slot, tests, timeout), slots, assigned)
    return Baseline(frozenset(found), frozenset().union(*passed))


def _passed(slot: Slot, tests: Sequence[str], timeout: float) -> set[str]:
    if not tests:
        return set()
    report = slot.folder.with_suffix(".xml")
    options = [f"--junitxml={report}", "-o", "junit_family=xunit1"]  # this format includes file names
    _, output = slot.pytest([*options, *tests], timeout, len(tests))
    if not report.exists():
        print(output, file=sys.stderr)
        return set()
    cases = [(f"{case.get('file')}::{case.get('name')}", len(case)) for case in ET.parse(report).iter("testcase")]
    return {test for test, _ in cases} - {test for test, remarks in cases if remarks}  # failures, errors, skips


def _judge(free: queue.Queue[Slot], mutant: Mutant, baseline: Baseline, timeout: float) -> Outcome:
    if problem := baseline.problem(mutant):
        return Outcome(mutant, "broken", 0.0, problem)
    slot, began = free.get(), time.perf_counter()
    try:
        with _applied(slot.folder, mutant):
            code, output = slot.pytest(["-x", *mutant.tests], timeout, len(mutant.tests), PYTHONDONTWRITEBYTECODE="1")
    finally:
        free.put(slot)
    seconds = time.perf_counter() - began
    lines = output.strip().splitlines() or [""]
    if code == PASSED:
        return Outcome(mutant, "survived", seconds)
    if code == FAILED or re.search(r"\b[1-9]\d* failed\b", lines[-1]):  # pytest itself may fail after a failed test
        return Outcome(mutant, "killed", seconds)
    return Outcome(mutant, "broken", seconds, f"pytest exited with code {code}: {lines[-1]}")


@contextmanager
def _applied(slot: Path, mutant: Mutant) -> Iterator[None]:
    """Apply the change; afterwards restore the file, its times and the caches of numba."""
    file = slot / mutant.file
    text, times = file.read_bytes(), file.stat()
    compiled = _compiled_with(slot, file)
    kept = {cache: cache.read_bytes() for one in compiled for cache in _caches(one)}
    for cache in kept:
        cache.unlink()
    file.write_text(text.decode().replace(mutant.old, mutant.new), "utf-8")
    # A time of its own, or Python may use bytecode of the old text, or of another mutant of the same length
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + next(_STAMPS) * 10**9))
    try:
        yield
    finally:
        file.write_bytes(text)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        for one in compiled:
            for cache in _caches(one):
                cache.unlink()
        for cache, data in kept.items():
            cache.write_bytes(data)


def _compiled_with(slot: Path, file: Path) -> list[Path]:
    """Return the compiled files that depend on a file, directly or not, including the file itself.

    Their caches must be removed, because numba does not notice changes of called functions in other files.
    """
    sources = {one: one.read_text("utf-8") for one in (slot / "src").rglob("*.py")}
    numba = {one: text for one, text in sources.items() if "tenor.compiled" in text}
    found = [file] if file in numba else []
    for one in found:  # the list grows during the loop
        module = ".".join(one.relative_to(slot / "src").with_suffix("").parts)
        found += [other for other, text in numba.items() if f"from {module} import" in text and other not in found]
    return found


def _caches(file: Path) -> list[Path]:
    return [cache for kind in ("nbi", "nbc") for cache in (file.parent / "__pycache__").glob(f"{file.stem}.*.{kind}")]


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that the tests find the mistakes in tests/mutants/*.toml.")
    parser.add_argument("--jobs", type=int, default=2, help="number of mutants to test at the same time")
    parser.add_argument(
        "--only", default="", metavar="SUBSTRING", help="test only mutants with this text in their name or file"
    )
    parser.add_argument("--timeout", type=float, default=120.0, help="time limit of a test in seconds")
    parser.add_argument("--root", type=Path, default=ROOT, help="root of the tree to test (default: this repository)")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that copies and processes are removed
    began, root = time.perf_counter(), given.root.resolve()
    every = load_mutants(root / "tests" / "mutants")
    chosen = [mutant for mutant in every if given.only in mutant.name or given.only in mutant.file]
    print(f"{len(chosen)} mutants; running their tests on the unchanged code first", flush=True)
    outcomes = []
    for outcome in check(root, chosen, max(1, given.jobs), given.timeout, PRELOADED):
        outcomes.append(outcome)
        print(outcome, flush=True)
    bad = [outcome for outcome in outcomes if outcome.verdict != "killed"]
    print(f"\n{len(outcomes) - len(bad)} of {len(outcomes)} killed in {time.perf_counter() - began:.0f} s")
    for outcome in bad:
        print(outcome)
    return 1 if bad or not outcomes else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2:])
    else:
        sys.exit(main())
