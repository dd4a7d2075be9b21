"""The code stays small enough to find one's way: lines of a file, modules of a folder, parameters of a function."""

import ast
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tenor"
FILES = sorted(PACKAGE.rglob("*.py"))
# Compiled loops take each array as a parameter, and each option of a command is one.
LONGER = ("compiled", "inlined", "fast_compiled", "fast_inlined", "command")


def test_no_file_is_past_400_lines() -> None:
    lines = {str(file.relative_to(PACKAGE)): len(file.read_text("utf-8").splitlines()) for file in FILES}
    assert len(lines) > 400
    assert {file: count for file, count in lines.items() if count > 400} == {}


def test_no_folder_has_more_than_15_modules() -> None:
    modules = Counter(str(file.parent.relative_to(PACKAGE)) for file in FILES)  # with `__init__.py`
    assert len(modules) > 50
    assert {folder: count for folder, count in modules.items() if count > 15} == {}


def wide_functions(source: str) -> list[str]:
    """The functions with more than six parameters, not counting `self` and `cls`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = {parameter.arg for parameter in parameters} - {"self", "cls"}
            decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
            if len(names) > 6 and decorators.isdisjoint(LONGER):
                found.append(node.name)
    return found


def test_no_function_has_more_than_six_parameters() -> None:
    found = {str(file.relative_to(PACKAGE)): wide_functions(file.read_text("utf-8")) for file in FILES}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(a, b, c, d, e, f): ...", []),
        ("def f(a, b, c, d, e, /, f, *, g): ...", ["f"]),
        ("@compiled\ndef f(a, b, c, d, e, f, g): ...", []),
        ("class C:\n    def f(self, a, b, c, d, e, f): ...\n    def g(self, a, b, c, d, e, f, g): ...", ["g"]),
    ],
)
def test_a_wide_function_is_found(source: str, found: list[str]) -> None:
    assert wide_functions(source) == found
