"""Which points a scaling experiment has: stages, strategies and numbers of workers, without measuring anything."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.bench.scaling_tables import BASE, STRONG, UNTIL, WEAK
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.training.settings import TrainSettings
from tenor.training.traits import STRATEGIES, TASKS, has_server, strategy_name

STAGES = ("prepare", "train", "predict")


@dataclass(frozen=True)
class Point:
    """One row of the experiment."""

    stage: str
    kind: str  # BASE, STRONG, WEAK, or UNTIL for training until a threshold
    strategy: str  # of training; empty for the other stages
    workers: int
    cores: int  # of this machine

    @property
    def name(self) -> str:
        """Such as `train-strong-2`, or `train-local-sgd-weak-4` for a strategy that was chosen."""
        chosen = self.strategy if self.strategy not in ("", "auto") else ""
        kind = "" if self.kind == BASE else self.kind
        return "-".join(filter(None, [self.stage, chosen, kind, str(self.workers)]))

    @property
    def processes(self) -> int:
        """The processes that run at the same time, including a parameter server."""
        return self.workers + (self.stage == "train" and has_server(self.strategy, self.workers))

    @property
    def shares_cores(self) -> bool:
        """Whether processes have to share cores, so that the row cannot show scaling."""
        return self.processes > self.cores


def choose_points(settings: BenchSettings, cores: int) -> tuple[list[Point], list[str]]:
    """The points in the order in which they are measured, and notes about points that are left out.

    Raises:
        UsageError: Options contradict each other, or no point is left.
    """
    stages = settings.listed("stages", STAGES)
    names = settings.listed("strategies", ("auto", *STRATEGIES))
    _refuse(settings, stages, names)
    points, notes = [], []
    for stage in stages:
        for strategy in names if stage == "train" else [""]:
            for place, workers in enumerate(_counts(settings, stage, strategy)):
                if reason := _why_not(stage, strategy, workers):
                    notes.append(f"Left out {strategy} with {workers} workers: {reason}.")
                    continue
                points += [Point(stage, kind, strategy, workers, cores) for kind in _kinds(settings, stage, place)]
    by_name = {point.name: point for point in points}
    if not by_name:
        raise UsageError("nothing to measure: " + " ".join(notes), remedy="choose other --workers or --strategies")
    chosen = [by_name[name] for name in settings.chosen(by_name)]
    if any(point.shares_cores for point in chosen):
        notes.append(
            f"Rows with more processes than the {cores} cores of this machine have no speed-up: they show what sharing "
            "cores costs, not scaling."
        )
    return chosen, notes


def _refuse(settings: BenchSettings, stages: list[str], names: list[str]) -> None:
    """Options that have no effect with the chosen stages, or cannot work together."""
    only_train = {
        "--network": settings.network,
        "--until-loss": settings.until_loss,
        "--until-accuracy": settings.until_accuracy,
        "--data": settings.data,
    }
    given = [option for option, value in only_train.items() if value]
    if given and stages != ["train"]:
        what = f"{given[0]} applies to training only, but --stages has {', '.join(stages)}"
        raise UsageError(what, remedy="add --stages train")
    if settings.network and max(settings.worker_counts()) < 2:
        raise UsageError("--network has no effect with one worker", remedy="give more --workers, or omit --network")
    if settings.network and "hogwild" in names:
        what = "--strategies hogwild shares memory, so it cannot run on the test hosts of --network"
        raise UsageError(what, remedy="choose other strategies, or omit --network")


def _kinds(settings: BenchSettings, stage: str, place: int) -> list[str]:
    kinds = [BASE] if place == 0 else [STRONG, WEAK]
    return [*kinds, UNTIL] if stage == "train" and (settings.until_loss or settings.until_accuracy) else kinds


def _counts(settings: BenchSettings, stage: str, strategy: str) -> tuple[int, ...]:
    """The numbers of workers; a strategy for one process has no others."""
    counts = tuple(dict.fromkeys(settings.worker_counts()))
    return (1,) if stage == "train" and STRATEGIES[strategy_name(strategy, 2)].is_for_one else counts


def _why_not(stage: str, strategy: str, workers: int) -> str:
    """Why a strategy cannot train with this number of workers; empty if it can."""
    if stage != "train":
        return ""
    traits, depth = STRATEGIES[strategy_name(strategy, workers)], TrainSettings().model_parallel
    most = TASKS["reviews"].num_stages
    if traits.splits_model and "model_parallel" not in traits.settings:
        return f"the model has only {most} stages" if workers > most else ""
    if traits.splits_model and (workers < 2 * depth or workers % depth):
        return f"it needs a multiple of {depth} workers, at least {2 * depth}"
    return ""
