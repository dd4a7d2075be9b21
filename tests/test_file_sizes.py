"""A file that grows past 400 lines wants to be two."""

from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_file_is_past_400_lines(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= 400
