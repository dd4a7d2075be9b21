"""Files and folders stay small enough to find one's way: 400 lines per file, 15 modules per folder."""

from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"
FILES = sorted(PACKAGE.rglob("*.py"))


def test_no_file_is_past_400_lines() -> None:
    lines = {str(file.relative_to(PACKAGE)): len(file.read_text("utf-8").splitlines()) for file in FILES}
    assert len(lines) > 400
    assert {file: count for file, count in lines.items() if count > 400} == {}


def test_no_folder_has_more_than_15_modules() -> None:
    modules = Counter(str(file.parent.relative_to(PACKAGE)) for file in FILES)  # with `__init__.py`
    assert len(modules) > 50
    assert {folder: count for folder, count in modules.items() if count > 15} == {}
