"""The tree in README.md is the disk: every folder and file with one comment, nothing that is not there."""

from pathlib import Path

import readme_tree


def test_the_tree_matches_the_disk() -> None:
    listed = readme_tree.in_readme(readme_tree.README.read_text("utf-8"))
    assert list(listed) == readme_tree.on_disk(), "run: make docs"


def test_every_line_has_a_comment() -> None:
    listed = readme_tree.in_readme(readme_tree.README.read_text("utf-8"))
    assert [path for path, comment in listed.items() if not comment] == []


def test_drawing_and_reading_are_inverse(tmp_path: Path) -> None:
    for name in ("b.py", "__init__.py", "room/__init__.py", "room/a.py", "room/inner/z.py", "zoo/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    paths = readme_tree.on_disk(tmp_path)
    assert paths == ["__init__.py", "b.py", "room/", "room/a.py", "room/inner/", "room/inner/z.py", "zoo/"]
    comments = {path: f"about {path}" for path in paths}
    assert readme_tree.in_readme(readme_tree.draw(paths, comments)) == comments
