"""The documents name what is there: every command, and links that lead somewhere."""

import re
from pathlib import Path

import command_reference
import pytest

from tenor.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    assert f"\n## tenor {name}\n" in command_reference.PAGE.read_text("utf-8"), "run: make docs"


def test_the_reference_is_what_the_commands_say() -> None:
    assert command_reference.PAGE.read_text("utf-8") == command_reference.render(), "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    links = _LINK.findall(_FENCE.sub("", page.read_text("utf-8")))
    lost = [link for link in links if not re.match(r"\w+:", link) and not _leads(page, link)]
    assert lost == []


def _leads(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in _anchors(target))


def _anchors(page: Path) -> set[str]:
    """Headings as the usual renderers name them: lower case, dashes for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_pages_are_found() -> None:
    assert ROOT / "README.md" in PAGES and command_reference.PAGE in PAGES
