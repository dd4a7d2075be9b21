"""Keep the tree of `src/tenor` in README.md in step with the disk: `python tools/readme_tree.py` rewrites it.

A comment already in the README stays; a new file gets the first line of its docstring.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PACKAGE = ROOT / "src" / "tenor"
_BLOCK = re.compile(r"```text\nsrc/tenor/\n(.*?)```", re.DOTALL)
_WIDTH = 28


def on_disk(package: Path = PACKAGE) -> list[str]:
    """Paths below the package in the order drawn: files, then folders (with `/`). A folder stands for its __init__."""
    found: list[str] = []

    def visit(folder: Path) -> None:
        entries = [e for e in folder.iterdir() if e.name != "__pycache__"]
        for entry in sorted(entries, key=lambda e: (e.is_dir(), e.name != "__init__.py", e.name)):
            if entry.name == "__init__.py" and folder != package:
                continue
            found.append(entry.relative_to(package).as_posix() + ("/" if entry.is_dir() else ""))
            if entry.is_dir():
                visit(entry)

    visit(package)
    return found


def in_readme(text: str) -> dict[str, str]:
    """Path → comment of each line in the README's tree."""
    block = _BLOCK.search(text)
    comments: dict[str, str] = {}
    folders: list[str] = []
    for line in block.group(1).splitlines() if block else []:
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        name, _, comment = line.strip().partition(" ")
        del folders[depth:]
        comments["".join(folders) + name] = comment.strip()
        if name.endswith("/"):
            folders.append(name)
    return comments


def draw(paths: list[str], comments: dict[str, str]) -> str:
    lines = []
    for path in paths:
        parts = path.rstrip("/").split("/")
        name = "  " * len(parts) + parts[-1] + ("/" if path.endswith("/") else "")
        lines.append(f"{name:<{_WIDTH}} {comments.get(path) or docstring(path)}".rstrip())
    return "```text\nsrc/tenor/\n" + "\n".join(lines) + "\n```"


def docstring(path: str) -> str:
    """The first line of a module's docstring, as a comment."""
    file = PACKAGE / path / "__init__.py" if path.endswith("/") else PACKAGE / path
    if file.suffix != ".py" or not file.exists():
        return ""
    words = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    first = words.partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:] if first[1:2].islower() else first


def main() -> None:
    text = README.read_text("utf-8")
    README.write_text(_BLOCK.sub(lambda _: draw(on_disk(), in_readme(text)), text), "utf-8")


if __name__ == "__main__":
    main()
