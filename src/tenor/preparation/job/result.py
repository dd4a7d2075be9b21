"""The result of `tenor.prepare`, and the report that job.json keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tenor.store.manifest import UNLABELLED, Manifest


@dataclass(frozen=True)
class JobReport:
    """Where a job ran and how long it took; the content of job.json, beside the job's key."""

    seconds: float
    stages: dict[str, float]  # seconds of each stage
    bytes: int  # of the input
    inputs: tuple[str, ...]
    engine: str
    workers: int
    tenor: str  # version


@dataclass(frozen=True)
class PrepareResult:
    """The rows of a prepared folder, all accounted for: rows_read = rows_kept + duplicates + dropped + rejected.

    Attributes:
        out: The folder of the prepared data.
        rows_read: Rows that were read.
        rows_kept: Rows in the prepared data.
        duplicates: Rows with the text of another row.
        dropped: Rows without words or with a neutral rating, by reason.
        rejected: Rows that could not be read, by reason.
        tokens: Tokens of all kept rows.
        vocab_size: Entries of the vocabulary, with padding and unknown.
        classes: Names of the classes.
        splits: For each split: rows, tokens, rows of each class (none if unlabelled) and shards.
        seconds: How long the job took.
        mb_per_s: Megabytes of input per second.
        engine: Where the job ran.
        workers: Number of worker processes.
        manifest_sha256: The hash that identifies the data.
    """

    out: str
    rows_read: int
    rows_kept: int
    duplicates: int
    dropped: dict[str, int]
    rejected: dict[str, int]
    tokens: int
    vocab_size: int
    classes: tuple[str, ...]
    splits: dict[str, dict[str, Any]]
    seconds: float
    mb_per_s: float
    engine: str
    workers: int
    manifest_sha256: str

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values, as `tenor prepare --json` prints them.

        >>> tenor.prepare("reviews.jsonl.gz", "data").as_dict()["rows_read"]  # doctest: +SKIP
        10000
        """
        return asdict(self)


def make_result(out: Path, manifest: Manifest, report: JobReport) -> PrepareResult:
    """The result of a finished job."""
    rows = manifest.rows
    splits = {
        name: {
            "rows": info.rows,
            "tokens": info.tokens,
            "classes": dict(zip(manifest.classes, info.class_counts, strict=name != UNLABELLED)),
            "shards": len(info.shards),
        }
        for name, info in manifest.splits.items()
    }
    return PrepareResult(
        out=str(out),
        rows_read=rows["read"],
        rows_kept=rows["kept"],
        duplicates=rows["duplicates"],
        dropped=rows["dropped"],
        rejected=rows["rejected"],
        tokens=sum(info.tokens for info in manifest.splits.values()),
        vocab_size=manifest.vocab_size,
        classes=manifest.classes,
        splits=splits,
        seconds=report.seconds,
        mb_per_s=report.bytes / 1e6 / max(report.seconds, 1e-9),
        engine=report.engine,
        workers=report.workers,
        manifest_sha256=manifest.sha256,
    )
