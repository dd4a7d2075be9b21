"""docs/files.md lists what is on the disk, and every file says what is in it."""

from pathlib import Path

import file_list


def test_the_page_is_what_the_files_say() -> None:
    assert file_list.PAGE.read_text("utf-8") == file_list.render(), "run: make docs"


def test_every_file_says_what_is_in_it() -> None:
    assert [str(file) for file in file_list.PACKAGE.rglob("*.py") if not file_list.sentence(file)] == []


def test_a_page_of_a_small_package(tmp_path: Path) -> None:
    package = tmp_path / "tenor"
    for name, text in (("__init__", "Top."), ("b", "A | b\nc.\n\nMore."), ("room/__init__", "Room."), ("room/a", "")):
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'"""{text}"""\n')
    rows = [line for line in file_list.render(package).splitlines() if line.startswith(("## ", "| `"))]
    assert rows == ["## src/tenor/", "| `b.py` | A \\| b c. |", "## src/tenor/room/", "| `a.py` |  |"]
