"""Tables of the strategies and the tasks with their properties, which load no implementation.

Settings, refusals, launchers and benchmarks read these tables, so they load neither torch nor numpy. A new strategy or
task needs one file and one entry here. An entry names its class, which is imported only when a run uses it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A setting that a strategy cannot honour: the given value, or without one every value but the default."""

    setting: str
    remedy: str
    value: str | None = None


@dataclass(frozen=True)
class StrategyTraits:
    """What the rest of the program has to know about a strategy."""

    implementation: str  # "module:class", a subclass of `strategies.base.Strategy`
    settings: tuple[str, ...] = ()  # settings that only this strategy and others that list them use
    is_balanced: bool = False  # workers do equal work and agree in every step, so --balance can move rows between them
    splits_model: bool = False  # each rank holds a part of the model
    has_server: bool = False  # with several processes, rank 0 holds the weights and does not compute
    is_for_one: bool = False  # takes no second worker
    refuses: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class TaskTraits:
    """What the rest of the program has to know about a task."""

    implementation: str  # "module:class", a subclass of `tasks.base.Task`
    reads_text: bool = True  # trains on a folder made by `tenor prepare`; its models predict text
    reads_words: bool = False  # trains on prepared data or a text file; generates a text if it is given its own name
    has_cells: bool = True  # its model is built from the cells of --cell
    num_stages: int = 3  # stages of its smallest model, over which model parallelism can spread the model
    model_settings: tuple[str, ...] | None = None  # settings of models of reviews that it uses; None: all of them


_COMPRESSION = ("compress", "top_k")
_RULE = ("lr", "optimizer", "momentum", "weight_decay")
_NO_BF16 = Refusal("precision", "use --precision fp32", "bf16")
_BY_SPEED = "omit it: the server gives each worker as much work as it can do"

STRATEGIES = {
    "single": StrategyTraits("tenor.training.strategies.single:Single", is_balanced=True, is_for_one=True),
    "allreduce": StrategyTraits("tenor.training.strategies.allreduce:AllReduce", _COMPRESSION, is_balanced=True),
    "local-sgd": StrategyTraits("tenor.training.strategies.local_sgd:LocalSGD", ("sync_every",)),
    "diloco": StrategyTraits("tenor.training.strategies.diloco:DiLoCo", ("sync_every", "outer_lr", "outer_momentum")),
    "hogwild": StrategyTraits("tenor.training.strategies.hogwild:Hogwild", ("sync_every",)),
    "async": StrategyTraits(
        "tenor.training.strategies.asynchronous:Asynchronous",
        ("staleness", "stale_rate", "delay_compensation", "async_data", "max_replacements", *_COMPRESSION),
        has_server=True,
        refuses=(Refusal("shares", _BY_SPEED), Refusal("token_caps", _BY_SPEED)),
    ),
    "model-parallel": StrategyTraits(
        "tenor.training.strategies.model_parallel:ModelParallel", splits_model=True, refuses=(_NO_BF16,)
    ),
    "hybrid": StrategyTraits(
        "tenor.training.strategies.hybrid:Hybrid", ("model_parallel",), splits_model=True, refuses=(_NO_BF16,)
    ),
}

TASKS = {
    "reviews": TaskTraits("tenor.training.tasks.reviews:Reviews"),
    "points": TaskTraits(
        "tenor.training.tasks.points:Points",
        reads_text=False,
        has_cells=False,
        num_stages=2,
        model_settings=("hidden", *_RULE),
    ),
    "words": TaskTraits(
        "tenor.training.tasks.words:Words",
        reads_text=False,
        reads_words=True,
        has_cells=False,
        num_stages=2,
        model_settings=("embedding_dim", *_RULE),
    ),
}


def strategy_name(chosen: str, num_processes: int) -> str:
    """The strategy that a setting means: `auto` is `single` for one process and `allreduce` for more."""
    if chosen != "auto":
        return chosen
    return "allreduce" if num_processes > 1 else "single"


def owners_of(setting: str) -> tuple[str, ...]:
    """The strategies that use a setting; none where all do."""
    return tuple(name for name, traits in STRATEGIES.items() if setting in traits.settings)


def has_server(strategy: str, num_processes: int) -> bool:
    """Whether rank 0 is a server that does not compute. A process alone is its own server."""
    return num_processes > 1 and STRATEGIES[strategy_name(strategy, num_processes)].has_server


def num_computing(strategy: str, num_processes: int) -> int:
    """The number of processes that compute gradients."""
    return num_processes - has_server(strategy, num_processes)
