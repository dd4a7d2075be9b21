"""The documentation builds as a site without warnings, and a page of the site asks no other host for anything."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from helpers.browser import CHROMIUM, browse
from helpers.processes import child_environment, python

ROOT = Path(__file__).resolve().parent.parent
_ASKED = re.compile(r"""<(?:link|script|img|iframe|source)\b[^>]*?(?:src|href)=["']?(?:https?:)?//[^"'> ]+""")

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = python("-B", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder))
    environment = child_environment(NO_MKDOCS_2_WARNING="1")
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_every_page_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")]
    names = {"index" if page.stem == "README" else page.stem for page in pages}
    assert names <= {page.stem for page in site.rglob("*.html")}
    home = (site / "index.html").read_text("utf-8")
    assert [str(page) for page in pages if page.stem != "README" and f'href="{page.as_posix()}.html' not in home] == []


def test_no_page_asks_another_host(site: Path) -> None:
    found = {page.name: _ASKED.findall(page.read_text("utf-8")) for page in site.rglob("*.html")}
    assert {name: asked for name, asked in found.items() if asked} == {}
    styles = [file for file in site.rglob("*.css") if re.search(r"url\(\s*[\"']?(https?:)?//", file.read_text("utf-8"))]
    assert styles == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_asks_nobody(site: Path) -> None:
    document, requests = browse(site / "index.html")
    assert "measures the speed-up from each extra worker process" in " ".join(document.split()) and requests == []


@pytest.mark.parametrize(
    ("target", "page", "moved"),
    [
        ("docs/quickstart.md", "index.md", "quickstart.md"),
        ("docs/architecture.md#glossary", "contributing/index.md", "../architecture.md#glossary"),
        ("../../CONTRIBUTING.md", "reference/python.md", "../contributing/index.md"),
        ("../../src/tenor/world.py", "contributing/new-cell.md", None),
        ("LICENSE", "index.md", None),
        ("#below", "reference/strategies.md", "#below"),
        ("https://example.org/a", "index.md", "https://example.org/a"),
    ],
)
def test_links_are_moved_with_their_pages(target: str, page: str, moved: str | None) -> None:
    import site_hooks

    assert site_hooks.relocated(target, page) == moved
