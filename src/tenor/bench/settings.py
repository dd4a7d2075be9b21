"""What every scenario is asked with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tenor.errors import UsageError
from tenor.settings import setting


@dataclasses.dataclass(frozen=True)
class BenchSettings:
    """Which sizes to measure and how often."""

    repeats: int = setting(3, "Measured runs of each contender, taken in turns.")
    warmups: int = setting(0, "Runs of each contender that are not measured, before any that is.")

    workers: str = setting(
        "1,2",
        "Numbers of workers to compare, with commas between.",
        owners=("train", "prepare", "scaling", "strategies"),
    )
    rows: str = setting(
        "", "Rows to measure, by name; empty: all.", owners=("train", "prepare", "balance", "strategies")
    )
    megabytes: int = setting(1000, "Size of the generated input.", owners=("prepare",))
    batch_sizes: str = setting("256,64", "Global batches to measure.", owners=("train",))
    epochs: int = setting(1, "Passes over the training rows in each run.", owners=("train", "strategies"))
    target: float = setting(0.0, "Also give the seconds to this validation accuracy; 0: not.", owners=("train",))
    data: str = setting("", "Prepared data; empty: the scenario's own.", owners=("train", "strategies", "large-batch"))
    task: str = setting("points", "What is learned.", ("points", "reviews"), owners=("strategies",))

    def __post_init__(self) -> None:
        for name, least in (("repeats", 1), ("warmups", 0), ("megabytes", 1), ("epochs", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"--{name} cannot be {getattr(self, name)}", remedy=f"give a number from {least} up")

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The rows to measure among those a scenario knows: all, or `--rows tenor-2,ddp-2` in that order."""
        names = list(dict.fromkeys(known))
        wanted = [name.strip() for name in self.rows.split(",")] if self.rows else names
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError(f"--rows does not know {unknown[0]!r}", remedy=f"choose among {', '.join(names)}")
        return wanted

    def worker_counts(self) -> tuple[int, ...]:
        """`--workers 1,2,4` as numbers."""
        return _numbers("--workers", self.workers)

    def batch_size_list(self) -> tuple[int, ...]:
        """`--batch-sizes 256,64` as numbers."""
        return _numbers("--batch-sizes", self.batch_sizes)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise UsageError(f"{option} cannot be {text!r}", remedy="give numbers from 1 up, such as 1,2,4")
    return numbers
