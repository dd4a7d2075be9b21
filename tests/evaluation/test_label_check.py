"""When the labels of a file cannot mean the same as those of the run's data."""

from __future__ import annotations

import pytest

from tenor.corpus.labels import make_rule
from tenor.errors import UsageError
from tenor.evaluation.label_check import check_labels
from tenor.evaluation.survey import Survey
from tenor.preparation.job.accounting import RowCounts

STARS = make_rule("binary", "1,2", "4,5")


@pytest.mark.parametrize(
    ("counts", "invalid", "refused"),
    [
        ({"1": 50, "4": 50, "6": 100}, 0, False),  # half of the rows, no more
        ({"1": 50, "4": 49, "6": 100}, 0, True),
        ({"1": 50, "4": 40}, 91, True),  # labels that are not ratings count too
        ({"1": 60, "0": 40}, 0, True),  # 0 and 1 where 1 and 2 are negative: one class alone is known
        ({"1": 95, "0": 5}, 0, False),
        ({"1": 1, "3": 500, "2.5": 100, "5": 1}, 0, False),  # neutral, however many
    ],
)
def test_when_labels_cannot_mean_the_same(counts: dict[str, int], invalid: int, refused: bool) -> None:
    read = sum(counts.values()) + invalid
    rows = RowCounts(read=read, kept=0, duplicates=0, dropped={}, rejected={"bad rating": invalid})
    survey = Survey(rows, counts, ("x",) if invalid else ())
    if refused:
        with pytest.raises(UsageError, match="does not know"):
            check_labels(survey, STARS, "file")
    else:
        assert bool(check_labels(survey, STARS, "file")) == ("3" not in counts)
