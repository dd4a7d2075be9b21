"""Start fork servers, ask them to run cases, and end them."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from helpers.processes import child_environment, kill_group, python

Answer = dict[str, Any]


class Server:
    """One fork server, as a context manager."""

    def __init__(self, seeds: Path, work: Path) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            python("-m", "fuzz.server", str(seeds.resolve()), str(work.resolve())),
            env=child_environment(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1", MPLBACKEND="svg"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._hear()
        except BaseException:
            self.close()
            raise

    def ask(self, kind: str, seed: int, **more: Any) -> Answer:
        """Run the case with this kind and seed; return the server's answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"kind": kind, "seed": seed, **more}).encode() + b"\n")
        self.process.stdin.flush()
        return self._hear()

    def _hear(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the fork server ended with code {self.process.wait()}"
        answer: Answer = json.loads(line)
        assert "mistake" not in answer, answer["mistake"]
        return answer

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and kill whatever is left of its process group."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        kill_group(self.process)


def run_cases(folder: Path, cases: Iterable[tuple[str, int]], jobs: int = 1, **more: Any) -> Iterator[Answer]:
    """Run the cases on `jobs` servers and yield the answers."""
    with contextlib.ExitStack() as stack:
        free: SimpleQueue[Server] = SimpleQueue()
        for number in range(jobs):  # the first server makes the good folders, which the others then use
            free.put(stack.enter_context(Server(folder / "seeds", folder / f"work-{number}")))

        def run(case: tuple[str, int]) -> Answer:
            server = free.get()
            try:
                return server.ask(*case, **more)
            finally:
                free.put(server)

        waiting = iter(cases)
        with ThreadPoolExecutor(jobs) as pool:
            while answers := [pool.submit(run, case) for case in islice(waiting, 8 * jobs)]:
                yield from (answer.result() for answer in answers)


@dataclass
class Summary:
    """Counts over many cases."""

    cases: int = 0
    commands: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    most_megabytes: float = 0.0
    most_seconds: float = 0.0
    most_processor_seconds: float = 0.0
    failing: list[Answer] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        self.cases += 1
        for outcome in answer["outcomes"]:
            self.commands += 1
            self.ends["done" if outcome["code"] == 0 else "refused" if outcome["code"] in (1, 2) else "died"] += 1
            self.most_megabytes = max(self.most_megabytes, outcome["megabytes"])
            self.most_seconds = max(self.most_seconds, outcome["seconds"])
            self.most_processor_seconds = max(self.most_processor_seconds, outcome["processor_seconds"])
            if outcome["code"]:
                self.refusals[_kind_of(outcome["said"])] += 1
            for failure in outcome["failures"]:
                name = f"{outcome['action']}: {failure}"
                self.failures[_short(name)] += 1
                self.examples.setdefault(_short(name), f"{answer['kind']} {answer['seed']} {answer['did']}")
        if any(outcome["failures"] for outcome in answer["outcomes"]):
            self.failing.append(answer)

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        told = [
            f"{self.cases} cases, {self.commands} commands: " + ", ".join(f"{n} {end}" for end, n in self.ends.items()),
            f"most memory {self.most_megabytes:.0f} MB, longest {self.most_seconds:.1f} s on the clock and "
            f"{self.most_processor_seconds:.1f} s of processor time",
            f"{len(self.failing)} failing cases",
        ]
        return told + [f"  {n:5d} {name}  (e.g. {self.examples[name]})" for name, n in self.failures.most_common()]


def _short(name: str) -> str:
    """Shorten a failure to its cause, without the details of the case, so that equal causes count together."""
    found = re.match(r".*?: (memory|slow|written outside: case|traceback: \S+ [\w.]+)", name)
    return found.group() if found else name


def _kind_of(said: str) -> str:
    """Return the error message without paths, so that equal refusals count together."""
    return " ".join(word for word in said.split() if "/" not in word)[:70]
