"""The settings of `tenor report` and `tenor runs`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tenor.settings import Settings, setting, wrong_value


@dataclass(frozen=True)
class ReportSettings(Settings):
    """What a report adds to what its runs and results contain. Each field is an option of `tenor report`.

    >>> ReportSettings(price=0.9).price
    0.9
    """

    price: float = setting(
        0.0,
        "Dollars per hour and worker. The page then shows what a run cost, and accuracy against dollars for several "
        "runs and for results with an accuracy; 0 for none.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.price < math.inf:
            raise wrong_value("price", self.price, "give 0 or a positive number of dollars")


@dataclass(frozen=True)
class RunsSettings(Settings):
    """Which runs to list and in which order, and whether to compare them. Each field is an option of `tenor runs`.

    >>> RunsSettings(where="workers=2,test_accuracy>0.9").where
    'workers=2,test_accuracy>0.9'
    """

    where: str = setting(
        "",
        "Only runs that fulfil all of these conditions on figures or settings, separated by commas, such as "
        "cell=gru,workers>1,test_accuracy>=0.9.",
    )
    sort: str = setting(
        "",
        "Figure or setting to sort by; a minus before the name puts the largest first. Default: the order in which the "
        "runs are given or found.",
    )
    limit: int = setting(0, "Maximum number of runs to list; 0 for no limit.")
    compare: bool = setting(
        False, "Compare the runs with the first one: settings, rows judged differently, and a paired test."
    )
    data: str | None = setting(
        None,
        "Compare on the rows of this prepared data or labelled raw file. Default: the test rows that the runs stored.",
    )
    split: str = setting("test", "Which split of prepared data to compare on.", ("train", "valid", "test"))
    flips: int = setting(10, "Maximum number of rows to show that two runs judged differently.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("limit", "flips"):
            if getattr(self, name) < 0:
                raise wrong_value(name, getattr(self, name), "give 0 or a positive number")
