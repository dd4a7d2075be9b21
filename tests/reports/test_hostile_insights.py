"""The page of `tenor insights` shows texts, phrases, groups, columns and file names of strangers as text only."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.pages import EVIL, foreign_code

from tenor.reports.sections.insights import insights_page


def values(name: str) -> dict[str, Any]:
    """A result of insights with `name` wherever a stranger chooses the words."""
    rate = {"rows": 9, "negative_share": 0.4, "low": 0.2, "high": 0.6}
    place = {"file": f"/x/{name}", "line": 3}
    phrase = {"phrase": name, "score": 2.0, "contribution": -1.5, "variants": [{"phrase": name, "rows": 2}], **rate}
    phrase |= {
        "examples": [{"text": name, **place}],
        "rows_recent": 4,
        "share_recent": 0.5,
        "share_before": 0.1,
        "z": 9.0,
    }
    return {
        "phrases": {"negative": [phrase], "positive": [phrase]},
        "rising": [phrase],
        "over_time": [{"period": name, **rate}, {"period": f"{name}2", **rate}],
        "period": name,
        "groups": [{"group": name, **rate}],
        "num_groups": 1,
        "by": name,
        "negative_share": 0.4,
        "negative_interval": [0.3, 0.5],
        "rows": 9,
        "rows_read": 9,
        "dropped": {},
        "rejected": {},
        "labelled_rows": 9,
        "labelled_negative_share": 0.4,
        "label_errors": [{"text": name, "label": name, "probability": 0.1, **place}],
        "near_duplicates": [{"text": name, "size": 2, "members": [place, place]}],
        "similarity": 0.75,
        "files": [name],
    }


@pytest.mark.parametrize("name", EVIL)
def test_words_of_strangers_stay_text(name: str) -> None:
    shown = insights_page(values(name))
    assert not foreign_code(shown) and shown.count("alert(1)") >= 12
    quote = name[0] if name[0] in "'\"" else '"'
    assert foreign_code(shown + f"<p title={quote}{name}{quote}>{name}</p>")  # what an escape would be missing
