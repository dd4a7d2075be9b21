"""A scenario that does no work but has the shape of one."""

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.progress import Progress


def run(settings: BenchSettings, progress: Progress) -> Result:
    contenders = [
        Contender(f"workers-{count}", lambda n=count: {"samples_per_s": 100.0 * n}, {"workers": count})
        for count in settings.worker_counts
    ]
    return measure("fake", contenders, settings.repeats, settings.warmups, progress)
