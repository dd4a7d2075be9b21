"""The pages agree with the code and the results they are made from, and their links lead somewhere."""

import ast
import inspect
import re
from pathlib import Path

import api_reference
import benchmark_page
import command_reference
import file_list
import pytest

from tenor.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tenor"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    assert f"\n## tenor {name}\n" in command_reference.PAGE.read_text("utf-8"), "run: make docs"


def test_the_reference_is_what_the_commands_say() -> None:
    assert command_reference.PAGE.read_text("utf-8") == command_reference.render(), "run: make docs"


def test_the_python_reference_is_what_the_docstrings_say() -> None:
    assert api_reference.PAGE.read_text("utf-8") == api_reference.render(), "run: make docs"


@pytest.mark.parametrize("file", benchmark_page.render(), ids=lambda file: file.name)
def test_the_benchmark_page_shows_the_results(file: Path) -> None:
    assert file.read_text("utf-8") == benchmark_page.render()[file], "run: make docs"


def test_every_result_is_on_the_benchmark_page_once() -> None:
    shown = [section.file for section in benchmark_page.SECTIONS]
    assert {result.stem for result in benchmark_page.RESULTS.glob("*.json")} <= {*shown}
    assert len({*shown}) == len(shown)  # each once


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(6.6, 245, (0, 250, 50)), (0.768, 0.795, (0.765, 0.795, 0.005)), (5, 5, (5, 5, 1))]
)
def test_the_axis_of_a_plot_holds_its_values(low: float, high: float, ticks: tuple[float, float, float]) -> None:
    assert benchmark_page.axis(low, high) == pytest.approx(ticks)


def test_the_readme_is_short_and_its_picture_small() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 100
    assert (ROOT / "docs" / "images" / "report.png").stat().st_size < 150_000


def test_sections_of_a_docstring_become_lists_and_examples_code() -> None:
    docstring = """Do it.

    Args:
        data: A folder,
            prepared.
        out: Another.

    Returns:
        The result, over
        two lines.

    >>> tenor.train("data", "run")  # doctest: +SKIP
    """
    assert "\n".join(api_reference._prose(inspect.cleandoc(docstring))).split("\n\n") == [
        "Do it.",
        "**Args**",
        "- `data`: A folder, prepared.\n- `out`: Another.",
        "**Returns**",
        "The result, over two lines.",
        '```python\n>>> tenor.train("data", "run")\n```\n',
    ]


def test_a_signature_shows_that_options_are_keywords() -> None:
    def train(data: "str", **options: "Unpack[TrainOptions]") -> "None": ...  # type: ignore[name-defined]  # noqa: F821

    shown = "tenor.train(data: str, **options: Unpack[TrainOptions]) -> None"
    assert api_reference._signature("tenor.train", train)[1] == shown


def test_lines_of_text_have_at_most_120_characters() -> None:
    generated = (command_reference.PAGE, api_reference.PAGE, file_list.PAGE)  # a paragraph is one line
    found = []
    for page in PAGES:
        lines = [] if page in generated else _FENCE.sub("", page.read_text("utf-8")).splitlines()
        wide = [line for line in lines if len(line) > 120 and not line.lstrip().startswith(("|", "<", "!"))]
        found += [f"{page.relative_to(ROOT)}: {line}" for line in wide]
    assert found == []


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


def test_the_order_of_imports_is_the_tested_one() -> None:
    """Rooms that do not exist yet may have a place in the test, but not on the page."""
    levels = next(
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "tests" / "test_imports.py").read_text("utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LEVELS"
    )
    here = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()} - {"__main__"}
    tested = [[room for room in level if room in here] for level in levels]
    section = ARCHITECTURE.read_text("utf-8").partition("## Imports go one way")[2].partition("\n## ")[0]
    printed = [line.strip().split(", ") for line in section.splitlines() if line.startswith("    ")]
    assert printed == [level for level in tested if level]


def test_every_path_on_the_architecture_page_exists() -> None:
    words = re.findall(r"`([\w/]+(?:\.py|/))`", ARCHITECTURE.read_text("utf-8"))
    bases = (ROOT, PACKAGE, PACKAGE / "training")
    assert len(words) > 40
    assert [word for word in words if not any((base / word).exists() for base in bases)] == []


def test_every_folder_of_the_package_is_on_the_architecture_page() -> None:
    words = ARCHITECTURE.read_text("utf-8")
    folders = [path.parent for path in (*PACKAGE.glob("*/__init__.py"), *PACKAGE.glob("training/*/__init__.py"))]
    assert [folder.name for folder in folders if f"| `{folder.name}/` |" not in words] == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = _LINK.findall((folder / "README.md").read_text("utf-8"))
    assert sorted(listed) == sorted(page.name for page in folder.glob("0*.md"))


def test_every_guide_is_linked_from_contributing() -> None:
    linked = _LINK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert [
        g.name for g in (ROOT / "docs" / "contributing").glob("*.md") if f"docs/contributing/{g.name}" not in linked
    ] == []


def test_the_pages_are_found() -> None:
    assert ROOT / "README.md" in PAGES and command_reference.PAGE in PAGES
