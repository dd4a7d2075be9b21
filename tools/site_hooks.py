"""Hooks of `mkdocs build`: pages from the root of the repository, a navigation that finds new pages, and links.

README.md, CONTRIBUTING.md and CHANGELOG.md lie outside docs/, so they are added as generated pages. Links in any page
that lead out of docs/ (to source files, results or the license) become plain text, because the site has no such pages.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing/index.md", "CHANGELOG.md": "changelog.md"}
SOURCES = {page: source for source, page in PAGES.items()}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r'<img src="([^"]+)"')
_OUTSIDE_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_config(config: Any) -> Any:
    """Replace `folder/*` in the navigation by the folder's pages that no other entry names."""
    config["nav"] = _expand(config["nav"], Path(config["docs_dir"]))
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie in the root of the repository."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at pages of the site; a link that leads out of docs/ becomes its text."""
    name = page.file.src_uri
    parts = _OUTSIDE_CODE.split(markdown)
    return "".join(part if part.startswith("```") else _relinked(part, name) for part in parts)


def _expand(entries: list[Any], docs: Path) -> list[Any]:
    named = {entry for entry in entries if isinstance(entry, str)}
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/*"):
            pages = sorted((docs / entry.removesuffix("/*")).glob("*.md"))
            found += [name for page in pages if (name := page.relative_to(docs).as_posix()) not in named]
        elif isinstance(entry, dict):
            found.append({title: _expand(of, docs) if isinstance(of, list) else of for title, of in entry.items()})
        else:
            found.append(entry)
    return found


def _relinked(text: str, page: str) -> str:
    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        moved = relocated(target, page)
        return words if moved is None else f"{mark}[{words}]({moved})"

    def image(found: re.Match[str]) -> str:
        return f'<img src="{relocated(found[1], page)}"'

    return _IMAGE.sub(image, _LINK.sub(link, text))


def relocated(target: str, page: str) -> str | None:
    """Where a link of `page` leads within the site; None if it leads out of docs/."""
    if re.match(r"\w+:|#", target):
        return target
    path, hash_mark, anchor = target.partition("#")
    folder = PurePosixPath() if page in SOURCES else PurePosixPath("docs", page).parent
    absolute = os.path.normpath(folder / path)  # relative to the root of the repository
    if absolute in PAGES:
        inside = PAGES[absolute]
    elif absolute.startswith("docs/"):
        inside = absolute.removeprefix("docs/")
    else:
        return None
    return os.path.relpath(inside, PurePosixPath(page).parent) + hash_mark + anchor
