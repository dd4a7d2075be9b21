"""Which benchmark results docs/benchmarks.md shows, in which order, and which figures of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of a table: a figure of each row, how to write it, and what it counts in."""

    title: str
    key: str
    style: str = ",.0f"
    scale: float = 1.0

    def text(self, row: Row) -> str:
        value = row.get(self.key)
        if value is None:
            return ""
        return value if isinstance(value, str) else format(value * self.scale, self.style)


@dataclass(frozen=True)
class Section:
    """One result file: what was compared, the command that gave it, and which figures are shown."""

    file: str
    title: str
    words: str
    command: str
    columns: Sequence[Column]
    plotted: str
    axis: str
    shown: Callable[[Row], bool] = lambda row: True
    name: Callable[[Row], str] = lambda row: row["name"]


def _with_batch(row: Row) -> str:
    return f"{row['name']}, batch {row['batch_size']}"


_NAME = Column("row", "name")
_BALANCE = (
    _NAME,
    Column("samples/s", "samples_per_s"),
    Column("share of the ideal", "share_of_ideal", ".3f"),
    Column("× the speed without balancing", "times_off", ".2f"),
)
_ACCURACY = (
    _NAME,
    Column("mean accuracy", "mean_accuracy", ".4f"),
    Column("macro-F1", "f1_macro", ".4f"),
    Column("AUC", "auc", ".4f"),
    Column("calibration error", "calibration_error", ".3f"),
    Column("seconds to train", "seconds", ",.1f"),
    Column("megabytes", "size_mb", ",.1f"),
)
_PEERS = (
    "All methods train on the same rows, choose their settings on the same validation rows, and are measured on the "
    "same test rows, over three seeds: means of the accuracy, medians of the rest. fastText has the best of 16 "
    "settings, NBSVM (n-grams of up to 2 or 3 words) the best of its grid."
)
_STRATEGIES = (
    _NAME,
    Column("workers", "workers"),
    Column("test accuracy", "test_accuracy", ".4f"),
    Column("points from one process", "points", "+.2f"),
    Column("samples/s", "samples_per_s"),
    Column("megabytes sent", "bytes_sent", ",.2f", 1e-6),
    Column("mean staleness", "staleness_mean", ".2f"),
)
_MIXES = (
    "The mix `1:3` has two workers, of which the second is three times slower; in `1:1→3` the second becomes "
    "three times slower during the run. Slow workers are emulated (`--slowdown`). `off` does not balance, "
    "`epoch` balances after each epoch, and `steps` every few steps. The ideal is the sum of the speeds that "
    "the workers reach alone."
)

SECTIONS = (
    Section(
        "prepare",
        "Prepare",
        (
            "The same file and the same work: clean, count, keep the 30,000 most frequent words, write their ids. "
            "`tenor-2` has two workers and `polars` uses both cores; `pandas` gets only 50 MB. `wc` is "
            "`wc -w`, which counts words and does nothing else."
        ),
        "tenor bench prepare --rows tenor-1,tenor-2,pandas,polars,wc --repeats 3 --out benchmarks/prepare.json",
        (
            _NAME,
            Column("MB read", "megabytes"),
            Column("MB/s", "mb_per_s", ".1f"),
            Column("× `wc -w`", "of_wc", ".2f"),
            Column("seconds to start", "startup_s", ".2f"),
        ),
        "mb_per_s",
        "MB/s",
    ),
    Section(
        "train",
        "Train, beside plain PyTorch",
        (
            "An LSTM (vectors of 100, state of 128, 30,000 words) on generated reviews. `ddp-2` is plain PyTorch "
            "with DistributedDataParallel and padded batches. `two-alone` is two independent runs side by side, "
            "an upper bound for two workers. `course-small` is the small configuration of a course project "
            "(10,000 words, two layers of 32), and `tenor-small` the same model in Tenor. The figures are rates "
            "of training, not times to an accuracy: after these two epochs plain DDP is ahead in validation "
            "accuracy at batch 256 and behind at batch 64."
        ),
        "tenor bench train --rows tenor-1,tenor-2,two-alone,ddp-2,course-small,tenor-small --repeats 3 --warmups 0 "
        "--epochs 2 --out benchmarks/train.json",
        (
            _NAME,
            Column("batch", "batch_size"),
            Column("workers", "workers"),
            Column("samples/s", "samples_per_s"),
            Column("× one worker", "speed_up", ".2f"),
            Column("× `two-alone`", "over_alone", ".2f"),
            Column("× `ddp-2`", "over_ddp", ".2f"),
            Column("× `course-small`", "over_course", ".2f"),
            Column("share of matrix-multiply rate", "matmul_share", ".2f"),
            Column("validation accuracy", "valid_accuracy", ".3f"),
        ),
        "samples_per_s",
        "samples/s",
        lambda row: "samples_per_s" in row,
        _with_batch,
    ),
    Section(
        "scaling",
        "Scaling",
        (
            "`strong` divides the same work among more workers; `weak` gives every worker as much work as one worker "
            "alone. Every worker has one thread. The machine was busy with other work, from which `chrt -r 1` protects "
            "a run. See [scaling experiments](reference/scaling.md)."
        ),
        "tenor bench scaling --workers 1,2 --repeats 3 --out benchmarks/scaling.json",
        (
            _NAME,
            Column("workers", "workers"),
            Column("reviews/s", "samples_per_s"),
            Column("speed-up", "speed_up", ".2f"),
            Column("efficiency", "efficiency", ".2f"),
            Column("seconds to start", "startup_s", ".2f"),
        ),
        "efficiency",
        "efficiency",
        lambda row: row.get("efficiency") is not None,
    ),
    Section(
        "plan-scores",
        "Plans beside measurements",
        (
            "Steps with two workers, predicted from a run of one worker (mixes: from two equal workers) before they "
            "were measured. `1gbit,1ms` are test hosts with that network between them. Errors are medians of the "
            "repeats; `inside` counts the repeats inside their intervals. The machine was busy with other work, from "
            "which `chrt -r 1` protects a run. See [how a plan is "
            "computed](reference/planning.md)."
        ),
        "python tools/plan_scores.py --out benchmarks/plan-scores.json",
        (
            _NAME,
            Column("predicted ms", "predicted_ms", ".2f"),
            Column("from", "low_ms", ".2f"),
            Column("to", "high_ms", ".2f"),
            Column("measured ms", "measured_ms", ".2f"),
            Column("error in %", "error", "+.1f", 100),
            Column("inside", "inside"),
            Column("repeats", "repeats"),
            Column("error of bytes in %", "byte_error", "+.1f", 100),
        ),
        "measured_ms",
        "measured ms of a step",
    ),
    Section(
        "balance",
        "Workers of different speed",
        _MIXES,
        "tenor bench balance --rows 1:3,1:2 --repeats 2 --out benchmarks/balance.json",
        _BALANCE,
        "share_of_ideal",
        "share of the ideal",
    ),
    Section(
        "balance-change",
        "Workers whose speed changes, equal workers, three workers",
        "One repeat. With three workers on two cores, two of them share a core.",
        'tenor bench balance --rows "1:1→3,1:1,2:2:6" --repeats 1 --out benchmarks/balance-change.json',
        _BALANCE,
        "share_of_ideal",
        "share of the ideal",
    ),
    Section(
        "large-batch",
        "Large batches",
        (
            "The learning rate was chosen for batch 32. `x8` and `x16` have 8 and 16 times that batch and the "
            "scaled rate; `…-without` keep the rate. See [train with large batches](how-to/large-batches.md)."
        ),
        "tenor bench large-batch --out benchmarks/large-batch.json",
        (
            _NAME,
            Column("batch", "batch_size"),
            Column("mean validation accuracy", "mean_accuracy", ".4f"),
            Column("points from batch 32", "points", "+.2f"),
        ),
        "valid_accuracy",
        "validation accuracy",
    ),
    Section(
        "strategies-reviews",
        "Strategies on reviews",
        (
            "A small LSTM on the demo's reviews, three epochs, paired seeds. Points are of validation accuracy. "
            "See [strategies](reference/strategies.md)."
        ),
        "tenor bench strategies --task reviews --workers 2 --epochs 3 --repeats 3 --out "
        "benchmarks/strategies-reviews.json",
        _STRATEGIES,
        "samples_per_s",
        "samples/s",
    ),
    Section(
        "strategies-points",
        "Strategies on points",
        (
            "The small dense network on four spirals, 100 epochs, one seed. The machine was busy with other work: "
            "compare accuracies only. The best possible accuracy is 0.972."
        ),
        "tenor bench strategies --task points --rows single,local-sgd,diloco,hogwild,async,async-free --workers 2,4,8 "
        "--epochs 100 --repeats 1 --out benchmarks/strategies-points.json",
        tuple(column for column in _STRATEGIES if column.key not in ("points", "samples_per_s")),
        "test_accuracy",
        "test accuracy",
        lambda row: row["strategy"] != "original",
    ),
    Section(
        "strategies-words",
        "Strategies on words",
        (
            "Skip-gram on the first 12 MB of text8, one epoch, one seed, trained with PyTorch: the experiment of the "
            "course project from which Tenor started. The loss is that of telling neighbours from noise words in the "
            "validation windows; similarity is the Spearman correlation with WordSim-353. There are two cores, so "
            "four and eight workers share them. Other work ran at idle priority. A window takes about 20 "
            "microseconds, so more workers only add the cost of keeping them together; [`tenor embed`]"
            "(reference/word-vectors.md) is the command to use."
        ),
        "tenor bench strategies --task words --data text8-12MB.txt --similarities wordsim353.tsv "
        "--rows single,hogwild,local-sgd,diloco,async --workers 1,2,4,8 --repeats 1 --out "
        "benchmarks/strategies-words.json",
        (
            _NAME,
            Column("workers", "workers"),
            Column("windows/s", "samples_per_s"),
            Column("× one process", "speed_up", ".2f"),
            Column("validation loss", "valid_loss", ".4f"),
            Column("similarity", "similarity", ".3f"),
            Column("megabytes sent", "bytes_sent", ",.0f", 1e-6),
        ),
        "similarity",
        "correlation with WordSim-353",
    ),
    Section(
        "embed",
        "Word vectors",
        (
            "Skip-gram on the first 12 MB of text8, 3 epochs, three seeds: 100 numbers per word, window 5, sample "
            "1e-4, learning rate 0.025. gensim and fastText draw 5 noise words per pair, Tenor 15 per window. Words "
            "are counted before frequent ones are left out. WordSim-353 is a Spearman correlation over 308 pairs, "
            "analogies the share of right answers to questions-words. See [word vectors](reference/word-vectors.md)."
        ),
        "tenor bench embed --data text8-12MB.txt --workers 1,2 --epochs 3 --repeats 3 --out benchmarks/embed.json",
        (
            _NAME,
            Column("workers", "workers"),
            Column("words/s", "words_per_s"),
            Column("× gensim", "times_gensim", ".2f"),
            Column("× one worker", "speed_up", ".2f"),
            Column("WordSim-353, mean", "mean_wordsim", ".3f"),
            Column("analogies, mean %", "mean_analogies", ".2f", 100.0),
            Column("loss", "loss", ".4f"),
            Column("memory MB", "memory_mb"),
        ),
        "words_per_s",
        "words/s",
    ),
    Section(
        "pretrained",
        "Word vectors from unlabelled reviews",
        (
            "2,000 labelled demo reviews to train on, 26,763 without a label, 3,992 to validate on; three epochs, "
            "three seeds. See [use reviews without a rating](how-to/few-labels.md)."
        ),
        "tenor bench pretrained --epochs 3 --repeats 3 --out benchmarks/pretrained.json",
        (
            _NAME,
            Column("model", "model"),
            Column("word vectors", "start"),
            Column("mean validation accuracy", "mean_accuracy", ".4f"),
            Column("points from random vectors", "points", "+.2f"),
        ),
        "valid_accuracy",
        "validation accuracy",
    ),
    Section(
        "accuracy-amazon",
        "Accuracy on Amazon reviews",
        f"62,646 reviews of about 20 kinds of products, half of them negative; 70 % of them to train on. {_PEERS}",
        "tenor bench accuracy --data reviews.ft.txt --rows default,fast,fasttext,nbsvm-2,nbsvm-3,majority --repeats 3 "
        "--out benchmarks/accuracy-amazon.json",
        _ACCURACY,
        "mean_accuracy",
        "accuracy",
    ),
    Section(
        "accuracy-films",
        "Accuracy on film reviews",
        f"The 25,000 reviews of IMDB among those of the demo; 70 % of them to train on. {_PEERS}",
        "tenor bench accuracy --data imdb.csv --negative 0 --positive 1 --rows "
        "default,fast,fasttext,nbsvm-2,nbsvm-3,majority --repeats 3 --out benchmarks/accuracy-films.json",
        _ACCURACY,
        "mean_accuracy",
        "accuracy",
    ),
    Section(
        "busy",
        "Beside a busy process",
        (
            "How much of its speed Tenor keeps while another process computes on the same two cores. `…-spinning` "
            "waits as the OpenMP library does by default. See [why threads "
            "sleep](decisions/0012-threads-that-sleep.md)."
        ),
        "tenor bench busy --workers 1,2 --repeats 3 --warmups 1 --out benchmarks/busy.json",
        (
            _NAME,
            Column("workers", "workers"),
            Column("beside", "beside"),
            Column("reviews/s", "reviews_per_s"),
            Column("share of the quiet speed", "kept", ".2f"),
        ),
        "reviews_per_s",
        "reviews/s",
    ),
    Section(
        "predict",
        "Predict, beside padded batches and fastText",
        (
            "From raw text, film reviews of about 1,300 bytes; the names end with the number of threads. `…-torch` "
            "computes the same model with padded batches in PyTorch's own operations, `lstm-torch` is an LSTM."
        ),
        "tenor bench predict --workers 1,2 --megabytes 5 --repeats 3 --out benchmarks/predict.json",
        (
            _NAME,
            Column("reviews/s", "reviews_per_s"),
            Column("× its peer", "of_peer", ".1f"),
            Column("reviews per second of processor time", "reviews_per_cpu_s"),
        ),
        "reviews_per_s",
        "reviews/s",
    ),
    Section(
        "serve",
        "Serve, beside a plain endpoint",
        (
            "200 clients that send one review per request without a pause. `plain-fastapi` calls the same model in "
            "torch once per request. Beside 500 connections that never finish a request, `/healthz` took at most "
            "1.8 ms. Other work ran at a lower priority."
        ),
        "tenor bench serve --run run --repeats 1 --out benchmarks/serve.json",
        (
            _NAME,
            Column("clients", "clients"),
            Column("requests/s", "requests_per_s"),
            Column("p50 ms", "p50_ms"),
            Column("p99 ms", "p99_ms"),
            Column("refused/s", "refused_per_s"),
            Column("p99 ms of refusals", "refused_p99_ms"),
            Column("CPU ms per answer", "cpu_ms_per_answer", ".2f"),
            Column("memory growth in MB", "memory_growth_mb", ".1f"),
        ),
        "requests_per_s",
        "requests/s",
        lambda row: "requests_per_s" in row,
    ),
)
