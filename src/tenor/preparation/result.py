"""What prepare gives back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tenor.store.manifest import Manifest


@dataclass(frozen=True)
class PrepareResult:
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
        return asdict(self)


def make_result(out: Path, manifest: Manifest, job: dict[str, Any]) -> PrepareResult:
    """The result of a finished job: what its manifest holds, and its times."""
    rows = manifest.rows
    splits = {
        name: {
            "rows": info.rows,
            "tokens": info.tokens,
            "classes": dict(zip(manifest.classes, info.class_counts, strict=True)),
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
        seconds=job["seconds"],
        mb_per_s=job["bytes"] / 1e6 / max(job["seconds"], 1e-9),
        engine=job["engine"],
        workers=job["workers"],
        manifest_sha256=manifest.sha256,
    )
