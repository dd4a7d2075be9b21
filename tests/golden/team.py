"""Every training case in a few processes that stay: `python -m golden.team FOLDER PLACE`.

Starting the workers of each case anew would take most of the test's time. So each case runs as under a launcher such as
torchrun: the processes set the launcher's variables, and each of them calls `tenor.train`. A case takes the first
processes; cases with one worker take turns.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from golden.cases import TRAIN, Case

PROCESSES = max(case.processes for case in TRAIN)
COUNTS = ("steps", "epochs", "skipped_steps")


class StopAfter:
    """Progress that sends this process a signal after some steps."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done = steps, 0.0

    def advance(self, amount: float, note: str = "") -> None:
        before, self.done = self.done, self.done + amount
        if before < self.steps <= self.done:
            signal.raise_signal(signal.SIGTERM)

    def start(self, stage: str, total: float | None, unit: str) -> None:
        pass

    def finish(self) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def warn(self, line: str) -> None:
        pass


def train_case(case: Case, folder: Path) -> dict[str, Any]:
    """Train, in the middle with a stop where the case has one; give what the test compares."""
    import tenor

    out = folder / case.folder
    settings = tenor.TrainSettings(**case.settings)
    if case.stop_after:
        _stop(case, out, settings)
        settings = tenor.TrainSettings(**{**case.settings, "resume": True})
    return describe_run(case, out, tenor.train(case.source, out, settings).as_dict())


def _stop(case: Case, out: Path, settings: Any) -> None:
    import tenor

    meeting = os.environ["TENOR_RENDEZVOUS"]
    os.environ["TENOR_RENDEZVOUS"] = f"{meeting}-before"  # a meeting place serves once
    try:
        tenor.train(case.source, out, settings, progress=StopAfter(case.stop_after))
    except tenor.TenorError as error:
        if error.exit_code != 128 + signal.SIGTERM:
            raise
    else:
        raise AssertionError(f"{case.name} was not stopped")
    os.environ["TENOR_RENDEZVOUS"] = meeting
    from torch import distributed

    if distributed.is_initialized():  # a process that is stopped usually ends
        distributed.destroy_process_group()


def describe_run(case: Case, out: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Counts and, where two runs give the same, the hashes of the final and of the kept weights, and the losses."""
    values = {name: result[name] for name in COUNTS}
    if not case.is_repeatable:
        return values
    kept = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
    losses = {f"{split}_log_loss": result[split]["log_loss"] for split in ("valid", "test")}
    if case.processes == case.workers:  # a server may grant a part of a batch twice
        values |= {"bytes_sent": result["bytes_sent"], "bytes_saved": result["bytes_saved"]}
    return {"weights_sha256": result["weights_sha256"], "model.safetensors": kept, **values, **losses}


def main() -> None:
    folder, place = Path(sys.argv[1]), int(sys.argv[2])
    found = {}
    for number, case in enumerate(TRAIN):
        first = number % PROCESSES if case.processes == 1 else 0
        if not first <= place < first + case.processes:
            continue
        _enter_world(place - first, case.processes, folder / "meetings" / case.folder)
        values = train_case(case, folder)
        if place == first:
            found[case.name] = values
    (folder / f"found-{place}.json").write_text(json.dumps(found), "utf-8")


def _enter_world(rank: int, size: int, meeting: Path) -> None:
    """The variables that torchrun sets; a file as the meeting place, because all processes are on this machine."""
    meeting.mkdir(parents=True, exist_ok=True)
    numbers = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size}
    os.environ.update({name: str(number) for name, number in numbers.items()})
    os.environ["TENOR_RENDEZVOUS"] = f"file://{meeting}/rendezvous"


if __name__ == "__main__":
    main()
