"""A scenario that returns fixed figures without doing any work."""

from pathlib import Path

from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.progress import Progress


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    assert folder.is_dir()
    contenders = [
        Contender(f"workers-{count}", lambda n=count: {"samples_per_s": 100.0 * n}, {"workers": count})
        for count in settings.worker_counts()
    ]
    return measure("fake", contenders, settings.repeats, settings.warmups, progress)
