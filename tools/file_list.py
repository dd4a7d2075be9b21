"""Writes docs/files.md, the list of all files in `src/tenor`, from their docstrings: `python tools/file_list.py`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "files.md"
PACKAGE = ROOT / "src" / "tenor"
_HEAD = """# Where things are

Every file of `src/tenor` with the first paragraph of its docstring, one section per folder. `make docs` writes this
page, and a test fails if it differs from the code.
"""


def render(package: Path = PACKAGE) -> str:
    """Return the whole page."""
    folders = [package, *sorted(path.parent for path in package.rglob("__init__.py") if path.parent != package)]
    return "\n".join([_HEAD, *(_section(folder, package) for folder in folders)])


def _section(folder: Path, package: Path) -> str:
    name = (Path("src") / package.name / folder.relative_to(package)).as_posix()
    lines = [f"## {name}/", "", sentence(folder / "__init__.py"), ""]
    if files := sorted(file for file in folder.glob("*.py") if file.name != "__init__.py"):
        lines += ["| file | what is in it |", "|---|---|"]
        lines += [f"| `{file.name}` | {sentence(file).replace('|', chr(92) + '|')} |" for file in files] + [""]
    return "\n".join(lines)


def sentence(file: Path) -> str:
    """Return the first paragraph of the docstring of a module, on one line."""
    words = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(words.partition("\n\n")[0].split())


def main() -> None:
    PAGE.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
