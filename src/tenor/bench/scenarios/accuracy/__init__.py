"""Scenario `accuracy`: the presets beside fastText, NBSVM, TF-IDF with logistic regression, and the majority class.

All methods train on the same rows of `--data`, choose settings only on the same validation rows, and are measured on
the same test rows. Each repeat has another seed, for the rows held out of a raw file and for training. `seconds` is the
time to train the chosen model, `choice_seconds` the time of the other settings that were tried, `prepare_seconds` the
time from text to the input of training. `fasttext-autotune` may take as long as `default` took with the same seed.
`reviews_per_s` counts predictions from raw text in one thread. `fasttext-subwords` is measured only if `--rows` names
it.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.scenarios.accuracy.trials import PRESETS, Trials, warm_up
from tenor.bench.settings import BenchSettings
from tenor.errors import MissingExtra, UsageError
from tenor.progress import Progress

OPTIONS = ("rows", "data", "text_column", "label_column", "negative", "positive")
FASTTEXT = ("fasttext", "fasttext-autotune", "fasttext-subwords")
LINEAR = ("nbsvm-2", "nbsvm-3", "tfidf")
NAMES = (*PRESETS, *FASTTEXT, *LINEAR, "majority")
NOTES = (
    "Medians over seeds; mean_accuracy and sd_accuracy are the mean and the standard deviation over seeds. The numbers "
    "of rows are those of the first seed, the same for every method.",
    "size_mb is the size of the model's files; for nbsvm and tfidf, that of the n-grams and their weights.",
)


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Train and measure every method once per seed."""
    if not settings.data or not Path(settings.data).exists():
        what = f"--data must name reviews (got {settings.data!r})"
        raise UsageError(what, remedy="give a raw file with labels, or a folder of prepared data")
    names = settings.chosen(NAMES) if settings.rows else [name for name in NAMES if name != "fasttext-subwords"]
    _check_installed(names)
    trials = Trials(settings, folder, progress)
    warm_up([name for name in names if name in PRESETS], folder)
    contenders = [Contender(name, _with_next_seed(partial(trials.figures, name))) for name in names]
    result = measure("accuracy", contenders, settings.repeats, settings.warmups, progress)
    for row in result.rows:
        values = row["spread"]["accuracy"]["values"]
        row["mean_accuracy"] = statistics.fmean(values)
        row["sd_accuracy"] = statistics.stdev(values) if len(values) > 1 else None
        row["chosen"] = ", ".join(dict.fromkeys(filter(None, trials.chosen(row["name"]))))
        row |= {f"{split}_rows": count for split, count in trials.rows(0).rows.items()}
    result.notes.extend(NOTES)
    return result


def _check_installed(names: list[str]) -> None:
    for module, users in (("fasttext", FASTTEXT), ("sklearn", LINEAR)):
        if (user := next((name for name in names if name in users), None)) and not importlib.util.find_spec(module):
            raise MissingExtra(f"the row {user}", "peers")


def _with_next_seed(run_seed: Callable[[int], Mapping[str, float]]) -> Callable[[], Mapping[str, float]]:
    seeds = iter(range(1 << 62))
    return lambda: run_seed(next(seeds))
