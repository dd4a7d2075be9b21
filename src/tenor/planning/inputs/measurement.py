"""The measurement that a plan is made from, and its file: everything that the cost model needs, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenor.bench.results import damaged, read_checked
from tenor.engines.records import from_json, to_json
from tenor.planning.costs.compute import CostLine
from tenor.planning.costs.noise_scale import NoiseScale
from tenor.planning.costs.touched_rows import RowFrequencies
from tenor.store.atomic import write_bytes
from tenor.store.strict import strict_json

FORMAT = 1


@dataclass(frozen=True)
class TableSize:
    """A table of which a step touches some rows."""

    rows: int
    row_bytes: int
    touched: float  # mean rows that a measured batch touched


@dataclass(frozen=True)
class ModelSize:
    """The bytes of a model."""

    dense_bytes: int
    tables: dict[str, TableSize]


@dataclass(frozen=True)
class StepCosts:
    """Fitted seconds of the parts of a step, for one worker."""

    compute: CostLine  # forward and backward, by padded tokens of the worker
    update: CostLine  # clipping, update, logging, by tokens of the global batch
    load: CostLine  # processor seconds of loading, by tokens of the global batch
    load_is_hidden: bool  # whether a free core did the loading, so that the other seconds do not contain it
    noise: tuple[float, ...]  # measured relative compute times, sorted
    exchange_s: float | None  # typical seconds of adding up gradients, if there were several workers
    exchange_workers: int  # that added them up
    steps: int  # that the fit rests on


@dataclass(frozen=True)
class CurvePoint:
    """The validation split after some training."""

    samples: int
    accuracy: float


@dataclass(frozen=True)
class Measurement:
    """What was measured on one machine."""

    source: str  # the run folder or file
    environment: dict[str, Any]
    command: str  # that repeats the measurement, as far as it is known
    strategy: str
    workers: int
    threads: int  # per worker
    cores: int  # of the machine
    batch_size: int
    reviews: int  # training rows
    epochs: int  # that the run was meant to have
    tokens: float  # mean tokens of a global batch
    padding: float  # padded tokens per token
    costs: StepCosts
    model: ModelSize
    noise_scale: NoiseScale | None
    curve: tuple[CurvePoint, ...]
    frequencies: RowFrequencies | None = None
    prepare_bytes_per_s: float | None = None  # of one worker
    settings: dict[str, Any] | None = None  # of `tenor train`
    data_sha256: str = ""

    @property
    def machine(self) -> str:
        """The processor in a few words."""
        machine = self.environment.get("machine", {})
        return f"{machine.get('processor', 'unknown processor')}, {machine.get('cores', '?')} cores"


def write_measurement(measurement: Measurement, file: Path) -> None:
    """Write the measurement as a JSON file."""
    values = {"format": FORMAT, "kind": "measurement", "measurement": to_json(measurement)}
    write_bytes(file, (strict_json(values, indent=1) + "\n").encode())


def read_measurement(file: Path) -> Measurement:
    """Read a file of `tenor plan --measure --out`.

    Raises:
        UsageError: The file is damaged, of another version, or something else.
    """
    values = read_checked(file, "a file written by `tenor plan --measure --out`", FORMAT)
    if values.get("kind") != "measurement":
        raise damaged(file, "it is not a measurement of `tenor plan --measure`")
    try:
        found = from_json(Measurement, values["measurement"])
    except (KeyError, ValueError) as error:
        raise damaged(file, f"its measurement cannot be read ({error})") from error
    _check_numbers(found, file)
    return replace(found, source=str(file))


def _check_numbers(found: Measurement, file: Path) -> None:
    """Refuse numbers with which no plan can be computed."""
    from tenor.planning.inputs.figures import find_wrong_figure

    if (wrong := find_wrong_figure(found)) is not None:
        raise damaged(file, wrong)
