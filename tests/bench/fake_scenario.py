"""A scenario that does no work but has the shape of one."""

from pathlib import Path

from tenor.bench.core import Contender
from tenor.bench.settings import BenchSettings


def contenders(settings: BenchSettings, folder: Path) -> list[Contender]:
    (folder / "input").write_text("prepared")

    def contender(workers: int) -> Contender:
        def run() -> dict[str, float]:
            assert (folder / "input").read_text() == "prepared"
            return {"samples_per_s": 100.0 * workers}

        return Contender(f"{workers} workers", run, {"workers": workers})

    return [contender(workers) for workers in settings.worker_counts()]
