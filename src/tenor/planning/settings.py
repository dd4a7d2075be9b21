"""The settings of `tenor plan`. A module without heavy imports, because `tenor --help` has to stay fast."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tenor.bench.network.spec import parse_network
from tenor.errors import UsageError
from tenor.settings import Settings, setting, wrong_value

PLANNED, MONEY, TARGET, OUTPUT = "What is planned", "Machines and money", "Questions", "Output"
STRATEGIES = ("auto", "single", "allreduce", "local-sgd", "diloco", "hogwild", "async")
SUMLESS = ("single", "hogwild", "async")  # whose workers never add up over a network
LOCAL_STRATEGIES = ("local-sgd", "diloco")  # whose workers exchange weights only every --sync-every steps
RING, TREE = "ring", "tree"
JOB_FILES = ("slurm", "k8s", "skypilot", "torchrun")
MOST_WORKERS = 65_536
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|usd)", re.ASCII)


@dataclass(frozen=True)
class PlanSettings(Settings):
    """What to plan. Each field is an option of `tenor plan`.

    >>> PlanSettings(workers="1,2,8-32").worker_counts()
    (1, 2, 8, 16, 32)
    """

    measure: bool = setting(
        False,
        "First measure this machine for about one minute, on the prepared data given as SOURCE or on generated "
        "reviews.",
    )
    score: bool = setting(False, "Show predictions beside measured runs, from the ledger in the folder SOURCE.")
    data: str = setting("", "Prepared data of the run: word frequencies make predicted bytes exact.")

    workers: int | str = setting(
        "1-64", "Numbers of workers: separated by commas, and 1-64 for all powers of two in between.", group=PLANNED
    )
    strategy: str = setting("auto", "How the workers combine their updates.", STRATEGIES, group=PLANNED)
    batch_size: int | str = setting(
        "",
        "Global batch size, or auto for the fastest by the gradient noise scale. Default: as in the run.",
        group=PLANNED,
    )
    reviews: str | int = setting(
        "", "Training reviews, such as 500000 or 142.8M. Default: as in the run.", group=PLANNED
    )
    gigabytes: float = setting(0.0, "Size of the raw reviews in GB; adds the time of `tenor prepare`.", group=PLANNED)
    epochs: int = setting(0, "Passes over the reviews; 0 means as in the run.", group=PLANNED)
    mix: str = setting(
        "",
        "Relative slowness, one number per worker: 1:3 is two workers, the second three times slower.",
        group=PLANNED,
    )
    balance: bool = setting(
        False, "Shares follow the speeds of the workers, as with `tenor train --balance`.", group=PLANNED
    )
    sync_every: int = setting(16, "Steps between two synchronisations of local-sgd and diloco.", group=PLANNED)

    sums: str = setting(
        RING,
        "How workers of several machines add up: over a ring, as gloo does, or over a tree, which MPI may choose for "
        "many workers.",
        (RING, TREE),
        group=PLANNED,
    )

    machine: str = setting(
        "",
        "Kinds of machines to plan for, separated by commas, with names from the price file. Default: the measured "
        "machine, at the lowest price for as many cores.",
        group=MONEY,
    )
    network: str = setting(
        "", "Bandwidth and latency between machines, such as 1gbit,5ms. Default: as in the price file.", group=MONEY
    )
    spread: bool = setting(False, "One worker per machine, instead of one per core.", group=MONEY)
    prices: str = setting("", "TOML file with prices. Default: the one that comes with Tenor.", group=MONEY)

    under: str = setting("", "Limit of time or money, such as 1h or 3usd; both with a comma between.", group=TARGET)
    accuracy: float = setting(
        0.0,
        "Validation accuracy to reach; the plan then tells how long that takes. With --from: only runs that reach it "
        "count.",
        group=TARGET,
    )

    write: str = setting("", "Also write the chosen plan as a job file.", ("", *JOB_FILES), group=OUTPUT)
    job: str = setting("", "Path of the job file. Default: tenor-plan.sbatch, .yaml or .sh.", group=OUTPUT)
    ledger: str = setting(
        "", "File that keeps the predictions. Default: predictions.jsonl beside SOURCE.", group=OUTPUT
    )

    def __post_init__(self) -> None:
        for name in ("workers", "batch_size", "reviews"):  # numbers are stored as words
            object.__setattr__(self, name, str(getattr(self, name)))
        super().__post_init__()
        self.worker_counts()
        self.num_reviews()
        self.limits()
        self.slowness()
        if self.network:
            parse_network(self.network)
        if self.batch_size not in ("", "auto") and not _is_count(str(self.batch_size)):
            raise wrong_value("batch_size", repr(self.batch_size), "give a whole number of at least 1, or auto")
        for name in ("epochs", "gigabytes"):
            if not 0 <= getattr(self, name) < math.inf:
                raise wrong_value(name, getattr(self, name), "give 0 or a positive number")
        if not 0 <= self.accuracy < 1:
            raise wrong_value("accuracy", self.accuracy, "give a number from 0 to below 1")
        if self.sync_every < 1:
            raise wrong_value("sync_every", self.sync_every, "give a whole number of at least 1")
        if self.sums == TREE and self.strategy in SUMLESS:
            what = f"--sums {self.sums} has no effect with --strategy {self.strategy}, whose workers do not add up"
            raise UsageError(what, remedy="omit one of them")
        if self.job and not self.write:
            raise UsageError(f"--job {self.job} has no effect without --write", remedy="add --write, or omit --job")

    def worker_counts(self) -> tuple[int, ...]:
        """`--workers 1,2,8-32` as rising numbers."""
        found: set[int] = set()
        for part in str(self.workers).split(","):
            low, dash, high = part.strip().partition("-")
            if not _is_count(low) or (dash and not _is_count(high)) or int(high or low) > MOST_WORKERS:
                remedy = f"give whole numbers from 1 to {MOST_WORKERS:,}, such as 1,2,4 or 1-64"
                raise wrong_value("workers", repr(self.workers), remedy)
            found.add(int(low))
            power = 1
            while dash and power <= int(high):
                found |= {power} if power >= int(low) else set()
                power *= 2
            found |= {int(high)} if dash else set()
        return tuple(sorted(found))

    def num_reviews(self) -> int:
        """`--reviews 142.8M` as a number; 0 if it is not given."""
        if not self.reviews:
            return 0
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMbB]?)", str(self.reviews).replace("_", ""), re.ASCII)
        count = round(float(found[1]) * {"": 1, "k": 1e3, "m": 1e6, "b": 1e9}[found[2].lower()]) if found else 0
        if count < 1:
            raise wrong_value("reviews", repr(self.reviews), "give a number such as 500000, 142.8M or 2B")
        return count

    def limits(self) -> tuple[float | None, float | None]:
        """`--under 1h,3usd` as seconds and dollars; None for one that is not given."""
        seconds = dollars = None
        for part in filter(None, self.under.split(",")):
            found = _LIMIT.fullmatch(part.strip())
            if not found or not float(found[1]):
                raise wrong_value("under", repr(self.under), "give a time such as 30m, 1h or 2d, or money such as 3usd")
            if found[2] == "usd":
                dollars = float(found[1])
            else:
                seconds = float(found[1]) * _SECONDS[found[2]]
        return seconds, dollars

    def slowness(self) -> tuple[float, ...]:
        """`--mix 1:3` as numbers; empty for equal workers."""
        try:
            factors = tuple(float(part) for part in self.mix.split(":")) if self.mix else ()
        except ValueError:
            factors = (0.0,)
        if not all(1 <= factor <= 1000 for factor in factors):
            raise wrong_value("mix", repr(self.mix), "give numbers of at least 1 with colons between, such as 1:3")
        return factors


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text) >= 1
