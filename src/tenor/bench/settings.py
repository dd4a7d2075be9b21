"""The settings of `tenor bench`. The scenarios that take an option declare it in their own files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tenor.bench.registry import scenarios_with
from tenor.errors import UsageError
from tenor.settings import Settings, setting, wrong_value
from tenor.training.traits import TASKS


@dataclasses.dataclass(frozen=True)
class BenchSettings(Settings):
    """What a scenario measures and how often. Each field is an option of `tenor bench`."""

    repeats: int = setting(3, "Measured runs of each row. The rows take turns.")
    warmups: int = setting(0, "Runs of each row before the measured ones, to warm up.")

    workers: int | str = setting(
        "1,2",
        "Numbers of workers to compare, separated by commas.",
        owners=scenarios_with("workers"),
    )
    rows: str = setting(
        "",
        "Names of the rows to measure, separated by commas. Default: all.",
        owners=scenarios_with("rows"),
    )
    megabytes: int = setting(1000, "Size of the generated input in MB.", owners=scenarios_with("megabytes"))
    batch_sizes: str = setting(
        "256,64", "Global batch sizes to compare, separated by commas.", owners=scenarios_with("batch_sizes")
    )
    epochs: int = setting(1, "Passes over the training rows in each run.", owners=scenarios_with("epochs"))
    target: float = setting(
        0.0, "Also measure the seconds until this validation accuracy; 0 for none.", owners=scenarios_with("target")
    )
    data: str = setting(
        "",
        "Folder of prepared data; embed reads a text file, accuracy also a raw file with labels. Default: data that "
        "the scenario prepares.",
        owners=scenarios_with("data"),
    )
    text_column: str = setting(
        "", "Column with the text in a raw file. Default: recognised.", owners=scenarios_with("text_column")
    )
    label_column: str = setting(
        "", "Column with the label in a raw file. Default: recognised.", owners=scenarios_with("label_column")
    )
    negative: str = setting(
        "", "Labels of a raw file that mean negative. Default: as in prepare.", owners=scenarios_with("negative")
    )
    positive: str = setting(
        "", "Labels of a raw file that mean positive. Default: as in prepare.", owners=scenarios_with("positive")
    )
    similarities: str = setting(
        "",
        "File of word similarities, such as wordsim353.tsv, to score word vectors on. Only with --task words.",
        owners=scenarios_with("similarities"),
    )
    task: str = setting("points", "Task to train.", tuple(sorted(TASKS)), owners=scenarios_with("task"))

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("repeats", 1), ("warmups", 0), ("megabytes", 1), ("epochs", 1)):
            if getattr(self, name) < least:
                raise wrong_value(name, getattr(self, name), f"give a whole number of at least {least}")

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The rows to measure, in the order of `--rows`; all `known` rows if `--rows` is not given."""
        names = list(dict.fromkeys(known))
        wanted = [name.strip() for name in self.rows.split(",")] if self.rows else names
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError(f"--rows has the unknown name {unknown[0]!r}", remedy=f"choose among {', '.join(names)}")
        return wanted

    def worker_counts(self) -> tuple[int, ...]:
        """`--workers 1,2,4` as numbers."""
        return _numbers("workers", str(self.workers))

    def batch_size_list(self) -> tuple[int, ...]:
        """`--batch-sizes 256,64` as numbers."""
        return _numbers("batch_sizes", self.batch_sizes)


def _numbers(name: str, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise wrong_value(name, repr(text), "give whole numbers of at least 1, separated by commas, such as 1,2,4")
    return numbers
