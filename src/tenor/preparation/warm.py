"""Loading (the first time: compiling) everything a worker needs, apart from any work."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

STAGE = "tenor.preparation.warm:run"


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Prepare a handful of rows, so that every kernel is ready."""
    from tenor.preparation.job import prepare
    from tenor.preparation.settings import PrepareSettings

    with tempfile.TemporaryDirectory(prefix="tenor-warm-") as folder:
        raw = Path(folder) / "r.jsonl"
        raw.write_text(
            "".join(f'{{"reviewText": "good word{n}", "overall": {1 + 4 * (n % 2)}}}\n' for n in range(50)), "utf-8"
        )
        prepare([raw], Path(folder) / "out", PrepareSettings(workers=1, valid_share=0.0, test_share=0.0))
    return {}
