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
    labels: str | None = setting(
        None, "Raw file: two classes, or one a star; default: as the run's data was prepared.", ("binary", "stars")
    )
    negative: str | None = setting(None, "Raw file: labels that mean negative; default: as the run's data.")
    positive: str | None = setting(None, "Raw file: labels that mean positive; default: as the run's data.")
    max_rejects: float = setting(0.01, "Raw file: the largest share of rows that may be unreadable.")


@dataclass(frozen=True)
class PredictSettings:
    text_column: str | None = setting(None, "Column of the text; known schemas are recognised.")
    engine: str = setting("local", "Where a whole file is predicted (with --out).", ("local", "dask", "spark"))
    workers: int = setting(1, "Worker processes for a whole file; 0 takes one a core.")
    cluster: str | None = setting(None, "Address of a running cluster: tcp:// or tls:// for Dask, a master for Spark.")
    tls_ca: str | None = setting(None, "Certificate authority file for a tls:// cluster.")
    tls_cert: str | None = setting(None, "Certificate file for a tls:// cluster.")
    tls_key: str | None = setting(None, "Key file for a tls:// cluster.")

    def __post_init__(self) -> None:
        check(self)
        if self.workers < 0:
            raise UsageError("--workers is below 0", remedy="give a number, or 0 for one a core")
