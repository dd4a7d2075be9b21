"""Run the fuzzer by hand: `python tests/fuzz/run.py --kind data --cases 5000 --seed 1 --jobs 2`.

`--only SEED` replays one case and keeps its folder.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path


def _timely(cases: Iterator[tuple[str, int]], seconds: float) -> Iterator[tuple[str, int]]:
    """Yield cases until the time is up; the time starts with the first case, when the servers are ready."""
    until = time.monotonic() + (seconds or math.inf)
    yield from takewhile(lambda case: time.monotonic() < until, cases)


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from fuzz.actions import KINDS
    from fuzz.client import Server, Summary, run_cases

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="data")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="the first case's seed; the next ones follow")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="replay the case with this seed and keep its folder")
    parser.add_argument("--folder", type=Path, help="where good folders and cases go; default: a temporary folder")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures.jsonl"), help="failing cases, one per line")
    parser.add_argument("--max-seconds", type=float, default=0.0, help="stop after so many seconds; 0: never")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="tenor-fuzz-") as scratch:
        folder = options.folder or Path(scratch)
        if options.only is not None:
            folder = options.folder or Path(tempfile.mkdtemp(prefix="tenor-fuzz-case-"))
            with Server(folder / "seeds", folder / "work-0") as server:
                answer = server.ask(options.kind, options.only, keep=True)
            print(json.dumps(answer, indent=1), f"\nthe case is in {folder / 'work-0'}", sep="")
            return int(any(outcome["failures"] for outcome in answer["outcomes"]))
        summary, began = Summary(), time.monotonic()
        cases = ((options.kind, options.seed + number) for number in range(options.cases))
        for answer in run_cases(folder, _timely(cases, options.max_seconds), options.jobs):
            summary.add(answer)
            for outcome in answer["outcomes"]:
                for failure in outcome["failures"]:
                    print(f"seed {answer['seed']}, {outcome['action']}: {failure}", file=sys.stderr, flush=True)
            if summary.cases % 100 == 0:
                rate = summary.cases / (time.monotonic() - began)
                print(
                    f"{summary.cases} cases, {len(summary.failing)} failing, {rate:.1f}/s", file=sys.stderr, flush=True
                )
    print("\n".join(summary.lines()))
    print("most frequent refusals:", *(f"  {n:5d} {said}" for said, n in summary.refusals.most_common(25)), sep="\n")
    if summary.failing:
        options.save.write_text("".join(json.dumps(answer) + "\n" for answer in summary.failing), "utf-8")
        print(f"saved to {options.save}; replay one with --kind {options.kind} --only SEED")
    return int(bool(summary.failing))


if __name__ == "__main__":
    sys.exit(main())
