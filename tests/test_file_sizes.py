"""Files and folders stay small enough to find one's way: 400 lines per file, 15 modules per folder."""

from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_file_is_past_400_lines(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= 400


FOLDERS = sorted({file.parent for file in PACKAGE.rglob("*.py")})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_no_folder_has_more_than_15_modules(folder: Path) -> None:
    assert len([file for file in folder.glob("*.py") if file.name != "__init__.py"]) <= 15
