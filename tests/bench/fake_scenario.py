"""A scenario that does no work but has the shape of one."""

from pathlib import Path

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.progress import Progress


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    (folder / "input").write_text("prepared")

    def contender(workers: int) -> Contender:
        def work() -> dict[str, float]:
            assert (folder / "input").read_text() == "prepared"
            return {"samples_per_s": 100.0 * workers}

        return Contender(f"{workers} workers", work, {"workers": workers})

    contenders = [contender(workers) for workers in settings.worker_counts()]
    return measure("fake", contenders, settings.repeats, settings.warmups, progress)
