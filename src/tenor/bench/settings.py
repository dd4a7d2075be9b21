"""The settings of `tenor bench`. The scenarios that take an option declare it in their own files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from tenor.bench.network.spec import parse_network
from tenor.bench.registry import scenarios_with
from tenor.errors import UsageError
from tenor.settings import Settings, option_name, setting, wrong_value
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
        "Which rows to measure, by the names in the result's table, separated by commas. Default: all.",
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
    stages: str = setting(
        "prepare,train,predict",
        "Stages to measure, separated by commas: prepare, train, predict.",
        owners=scenarios_with("stages"),
    )
    strategies: str = setting(
        "auto",
        "Strategies of `tenor train` to compare, separated by commas. auto is single, or allreduce for more workers.",
        owners=scenarios_with("strategies"),
    )
    reviews: int = setting(
        20_000,
        "Reviews to generate: all of the work for strong scaling, and the work of one worker for weak scaling. Ten "
        "times as many are prepared.",
        owners=scenarios_with("reviews"),
    )
    until_loss: float = setting(
        0.0,
        "Also measure the epochs and seconds until the mean training loss of an epoch is this low; 0 for none.",
        owners=scenarios_with("until_loss"),
    )
    until_accuracy: float = setting(
        0.0,
        "Also measure the epochs and seconds until this validation accuracy; 0 for none.",
        owners=scenarios_with("until_accuracy"),
    )
    network: str = setting(
        "",
        "Train on test hosts (network namespaces) with this bandwidth and latency between them, such as 1gbit,5ms. "
        "Needs root on Linux.",
        owners=scenarios_with("network"),
    )
    journal: str = setting(
        "",
        "File that keeps the finished runs. The same command continues after them. Default with --out: OUT.partial.",
        owners=scenarios_with("journal"),
    )
    clients: int = setting(200, "Clients that send requests at the same time.", owners=scenarios_with("clients"))
    duration: float = setting(60.0, "Seconds of load in each run.", owners=scenarios_with("duration"))
    run: str = setting("", "Run folder to serve. Default: a model that is trained.", owners=scenarios_with("run"))
    task: str = setting("points", "Task to train.", tuple(sorted(TASKS)), owners=scenarios_with("task"))

    def __post_init__(self) -> None:
        super().__post_init__()
        least_of = {"repeats": 1, "warmups": 0, "megabytes": 1, "epochs": 1, "reviews": 1, "clients": 1}
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise wrong_value(name, getattr(self, name), f"give a whole number of at least {least}")
        if not 0 <= self.until_loss < math.inf:
            raise wrong_value("until_loss", self.until_loss, "give a loss above 0, or 0 for none")
        if not 0 <= self.until_accuracy <= 1:
            raise wrong_value("until_accuracy", self.until_accuracy, "give a number from 0 to 1")
        if self.network:
            parse_network(self.network)
        if not self.duration > 0:
            raise wrong_value("duration", self.duration, "give a number of seconds above 0")

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The rows to measure, in the order of `--rows`; all `known` rows if `--rows` is not given."""
        names = list(dict.fromkeys(known))
        return self.listed("rows", names) if self.rows else names

    def listed(self, name: str, known: Iterable[str]) -> list[str]:
        """The words of a setting that lists some of the `known` ones, separated by commas."""
        names, wanted = list(known), [word.strip() for word in str(getattr(self, name)).split(",")]
        if unknown := [word for word in wanted if word not in names]:
            what = f"{option_name(name)} has the unknown name {unknown[0]!r}"
            raise UsageError(what, remedy=f"choose among {', '.join(names)}")
        return list(dict.fromkeys(wanted))

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
