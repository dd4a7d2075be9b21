"""The settings of `tenor insights` and `tenor drift`."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.corpus.settings import GROUP as RAW_INPUT
from tenor.corpus.settings import LabelledReadingSettings
from tenor.engines.settings import GROUP as ENGINE
from tenor.engines.settings import EngineSettings
from tenor.prediction.settings import EvaluateSettings
from tenor.settings import parse_workers, setting, wrong_value

PERIODS = ("auto", "day", "week", "month", "quarter", "year")
REPORT = "Report"
_OPTIONAL = "Rows without a rating are read too."


def _same(name: str, default: object = None) -> object:
    """A setting that reads like the one of `tenor evaluate` with the same name."""
    of = EvaluateSettings.__dataclass_fields__[name].metadata
    return setting(default, of["help"], of["choices"], group=of["group"])


@dataclass(frozen=True)
class RatedSettings(LabelledReadingSettings):
    """How files are read whose rows may have a rating."""

    title_column: str | None = _same("title_column")  # type: ignore[assignment]
    negative: str | None = _same("negative")  # type: ignore[assignment]
    positive: str | None = _same("positive")  # type: ignore[assignment]
    labels: str | None = _same("labels")  # type: ignore[assignment]
    max_rejects: float = setting(
        0.01, f"Maximum share of rows that may be rejected as unreadable. {_OPTIONAL}", group=RAW_INPUT
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.max_rejects <= 1:
            raise wrong_value("max_rejects", self.max_rejects, "give a number from 0 to 1")


@dataclass(frozen=True)
class InsightsSettings(EngineSettings, RatedSettings):
    """What `tenor insights` reads and reports. Each field is an option of the command.

    >>> InsightsSettings(by="asin", time="reviewTime").by
    'asin'
    """

    by: str | None = setting(None, "Column or JSON field by which reviews are grouped, such as a product.")
    time: str | None = setting(
        None, "Column or JSON field with the date of a review: ISO, `09 13, 2009`, or seconds since 1970."
    )
    period: str = setting("auto", "Length of a period. auto chooses one that gives a readable number.", PERIODS)
    phrases: int = setting(20, "Phrases to list for each side.", group=REPORT)
    suspects: float = setting(
        0.1, "Share of the labelled rows that are listed as suspected label errors.", group=REPORT
    )
    similarity: float = setting(
        0.75, "Two reviews are near-duplicates if the Jaccard similarity of their words is at least this.", group=REPORT
    )
    threads: int = setting(0, "Threads per worker; 0 divides the cores among the workers.", group=ENGINE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "workers", parse_workers(self.workers))
        if self.phrases < 1:
            raise wrong_value("phrases", self.phrases, "give a whole number of at least 1")
        if not 0 <= self.suspects <= 1:
            raise wrong_value("suspects", self.suspects, "give a number from 0 to 1")
        if not 0.5 <= self.similarity <= 1:
            raise wrong_value("similarity", self.similarity, "give a number from 0.5 to 1")
        if self.threads < 0:
            raise wrong_value("threads", self.threads, "give a whole number of at least 0")


@dataclass(frozen=True)
class DriftSettings(RatedSettings):
    """What `tenor drift` compares, and when it says that reviews are different. Each field is an option.

    >>> DriftSettings(effect=0.65).effect
    0.65
    """

    reference: str | None = setting(
        None,
        "Folder of prepared data or raw file to compare with. Default: the sample of its data that the run stores.",
    )
    rows: int = setting(5000, "Maximum number of reviews to compare from each side; a larger side is sampled.")
    effect: float = setting(
        0.6,
        "New reviews count as different if a classifier tells them from old ones with at least this AUC, and the AUC "
        "is significant. 0.5 is guessing.",
    )
    seed: int = setting(0, "Random seed for sampling the reviews and for dividing them into folds.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows < 100:
            raise wrong_value("rows", self.rows, "give a whole number of at least 100")
        if not 0.5 <= self.effect < 1:
            raise wrong_value("effect", self.effect, "give a number from 0.5 to below 1")
