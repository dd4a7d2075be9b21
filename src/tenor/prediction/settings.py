"""How to evaluate and predict: the reading options are those of prepare."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.errors import UsageError
from tenor.settings import check, setting


@dataclass(frozen=True)
class EvaluateSettings:
    split: str = setting("test", "The split of prepared data.", ("train", "valid", "test"))
    text_column: str | None = setting(None, "Raw file: column of the text; known schemas are recognised.")
    label_column: str | None = setting(None, "Raw file: column of the label.")
    title_column: str | None = setting(None, "Raw file: column joined to the text.")
    negative: str = setting("1,2", "Raw file: labels that mean negative.")
    positive: str = setting("4,5", "Raw file: labels that mean positive.")
    max_rejects: float = setting(0.01, "Raw file: the largest share of rows that may be unreadable.")


@dataclass(frozen=True)
class PredictSettings:
    text_column: str | None = setting(None, "Column of the text; known schemas are recognised.")
    engine: str = setting("local", "Where a whole file is predicted (with --out).", ("local", "dask", "spark"))
    workers: int = setting(1, "Worker processes for a whole file; 0 takes one a core.")
    cluster: str | None = setting(None, "Address of a running Dask cluster, or a Spark master.")

    def __post_init__(self) -> None:
        check(self)
        if self.workers < 0:
            raise UsageError("--workers is below 0", remedy="give a number, or 0 for one a core")
