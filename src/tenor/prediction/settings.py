"""The settings of `tenor evaluate` and `tenor predict`."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.corpus.columns import AUTO
from tenor.corpus.formats.registry import TEXT_CHOICES
from tenor.corpus.settings import GROUP as RAW_INPUT
from tenor.corpus.settings import LabelledReadingSettings, ReadingSettings
from tenor.engines.settings import GROUP as ENGINE
from tenor.engines.settings import EngineSettings
from tenor.errors import UsageError
from tenor.settings import parse_workers, setting, wrong_value
from tenor.store.manifest import SPLITS, UNLABELLED

_TITLE = (
    "Column or JSON field with a title, which is put before the text. Default: the title column of the run's data; '' "
    "for none."
)
OUTPUT = "Output"
OUTPUT_FORMATS = ("auto", "json", "csv", "parquet")
_THREADS = "Threads per worker; 0 divides the cores among the workers."
_AS_THE_RUN = "Default: as in the run's data."


@dataclass(frozen=True)
class EvaluateSettings(LabelledReadingSettings):
    """What to measure a run on, and with how many processes. Each field is an option of `tenor evaluate`.

    The reading settings and the label settings apply to raw files; `split` applies to prepared data.

    >>> EvaluateSettings(split="valid", workers=2).split
    'valid'
    """

    split: str = setting("test", "Which split of prepared data to measure.", SPLITS)
    title_column: str | None = setting(None, _TITLE, group=RAW_INPUT)
    labels: str | None = setting(
        None,
        f"Classes: negative and positive, or one class per star rating. {_AS_THE_RUN}",
        ("binary", "stars"),
        group=RAW_INPUT,
    )
    negative: str | None = setting(
        None, f"Ratings that mean negative, separated by commas. {_AS_THE_RUN}", group=RAW_INPUT
    )
    positive: str | None = setting(
        None, f"Ratings that mean positive, separated by commas. {_AS_THE_RUN}", group=RAW_INPUT
    )
    abstain_below: float = setting(
        0.0, "Count only rows as answered whose label has at least this probability, and report the coverage."
    )
    max_rejects: float = setting(0.01, "Maximum share of rows that may be rejected as unreadable.", group=RAW_INPUT)
    workers: int | str = setting(1, "Number of worker processes, or auto for one per core.", group="Workers")
    threads: int = setting(0, _THREADS, group="Workers")

    def __post_init__(self) -> None:
        if self.split == UNLABELLED:
            what = f"--split {UNLABELLED} has no labels to compare predictions with"
            raise UsageError(what, remedy=f"choose one of {', '.join(SPLITS)}")
        super().__post_init__()
        object.__setattr__(self, "workers", parse_workers(self.workers))
        _check_threads(self.threads)
        _check_shares(self.abstain_below, self.max_rejects)


@dataclass(frozen=True)
class PredictSettings(EngineSettings, ReadingSettings):
    """How a file of reviews is read, and where its predictions are computed. Each field is an option of
    `tenor predict`.

    >>> PredictSettings(text_column="body", workers="auto").workers
    'auto'
    """

    title_column: str | None = setting(None, _TITLE, group=RAW_INPUT)
    format: str = setting(
        AUTO,
        "Format of the input; text has one review per line. auto detects the format by file name and content.",
        TEXT_CHOICES,
        group=RAW_INPUT,
    )
    threads: int = setting(0, _THREADS, group=ENGINE)
    output_format: str = setting(
        "auto",
        "Format of --out. auto decides by its name: .csv, .parquet, or JSON lines.",
        OUTPUT_FORMATS,
        group=OUTPUT,
    )
    keep_columns: bool = setting(
        False,
        "Write all columns of the input beside the predictions. A column with the name of a prediction's column is "
        "renamed to original_NAME.",
        group=OUTPUT,
    )
    id_column: str | None = setting(None, "Write this column of the input, such as an id to join by.", group=OUTPUT)
    line_numbers: bool = setting(False, "Write the file and the line, or the row of a Parquet file.", group=OUTPUT)
    probabilities: bool = setting(False, "Write the probability of every class.", group=OUTPUT)
    abstain_below: float = setting(
        0.0,
        "Give no label to a review whose label has a lower probability than this, and report the coverage.",
        group=OUTPUT,
    )
    explain: bool = setting(
        False,
        "Write what each word adds to the decision: [start, end, word, contribution]; above 0 speaks for the label.",
        group=OUTPUT,
    )
    max_rejects: float = setting(
        0.0,
        "Maximum share of rows that may be rejected as unreadable; they are listed in OUT.rejects.jsonl. 0 stops at "
        "the first one.",
        group=OUTPUT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_threads(self.threads)
        _check_shares(self.abstain_below, self.max_rejects)
        if self.keep_columns and self.id_column is not None:
            raise UsageError("--keep-columns already keeps --id-column", remedy="omit one of them")


def _check_threads(threads: int) -> None:
    if threads < 0:
        raise wrong_value(
            "threads", threads, "give a whole number of at least 1, or 0 to divide the cores among the workers"
        )


def _check_shares(abstain_below: float, max_rejects: float) -> None:
    for name, value in (("abstain_below", abstain_below), ("max_rejects", max_rejects)):
        if not 0 <= value <= 1:
            raise wrong_value(name, value, "give a number from 0 to 1")
