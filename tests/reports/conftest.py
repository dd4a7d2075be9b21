"""Pages without PNG files, which take half of the time; the tests in `drawing/` check these files."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_png(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.parent.name != "drawing":
        monkeypatch.setattr("tenor.reports.drawing.plot.to_png", lambda figure: b"")
