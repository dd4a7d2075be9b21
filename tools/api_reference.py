"""Write docs/reference/python.md from the docstrings of the public names: `python tools/api_reference.py`."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tenor
from tenor.errors import name_settings
from tenor.settings import either

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
_HEAD = """# Python

These names make up the public interface: `import tenor`, then `tenor.train` and so on. All other modules may change
between versions. `make docs` writes this page from the docstrings; a test fails if the two differ.
"""
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples):$")
_ENTRY = re.compile(r"^(\w+): ")


def render() -> str:
    """The whole page: functions, then classes, then settings, each in the order of their names."""
    names = [name for name in tenor.__all__ if name != "__version__"]
    return "\n".join([_HEAD, *(_section(name, getattr(tenor, name)) for name in sorted(names, key=_rank))])


def _rank(name: str) -> tuple[int, str]:
    kind = 0 if name.islower() else 2 if name.endswith("Settings") else 1
    return kind, name


def _section(name: str, thing: Any) -> str:
    lines = [f"## {name}", ""]
    if inspect.isclass(thing):
        lines += [*_prose(_own_docstring(thing), dataclasses.is_dataclass(thing)), *_fields(thing)]
        for method, function in public_methods(thing):
            lines += [f"### {name}.{method}", "", *_function(f"{_instance(name)}.{method}", function)]
    else:
        lines += _function(f"tenor.{name}", thing)
    return "\n".join(lines)


def _function(name: str, function: Any) -> list[str]:
    return [*_signature(name, function), *_prose(inspect.getdoc(function) or "")]


def _signature(name: str, function: Any) -> list[str]:
    signature = inspect.signature(function)
    given = [_parameter(one) for one in signature.parameters.values() if one.name != "self"]
    end = f") -> {signature.return_annotation}"
    short = f"{name}({', '.join(given)}{end}"
    lines = [short] if len(short) <= 100 else [f"{name}(", *(f"    {one}," for one in given), end]
    return ["```python", *lines, "```", ""]


def _parameter(parameter: inspect.Parameter) -> str:
    """The name and type; a default that is an object is shown as the call without arguments that makes it."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    words = f"{stars}{parameter.name}: {parameter.annotation}"
    default = parameter.default
    if default is inspect.Parameter.empty:
        return words
    plain = default is None or isinstance(default, str | int | float)
    return f"{words} = {default!r}" if plain else f"{words} = {type(default).__name__}()"


def _own_docstring(kind: type) -> str:
    """The docstring, unless it is the signature that dataclasses put there."""
    words = inspect.getdoc(kind) or ""
    return "" if words.startswith(f"{kind.__name__}(") else words


def _instance(kind: str) -> str:
    """The name of a value of a class, such as `model` for SentimentModel and `result` for TrainResult."""
    return re.findall("[A-Z][a-z]+", kind)[-1].lower()


def public_methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods that a class defines itself and that users may call; properties do not count."""
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def _fields(kind: type) -> list[str]:
    if not dataclasses.is_dataclass(kind):
        return []
    fields = dataclasses.fields(kind)
    if not any(field.metadata for field in fields):
        meanings = attribute_meanings(kind)
        rows = [f"| `{field.name}` | {_cell(meanings.get(field.name, ''))} | {_code(field.type)} |" for field in fields]
        return ["| attribute | meaning | type |", "|---|---|---|", *rows, ""]
    rows = [_setting(field) for field in fields]
    return ["| setting | meaning | type | default |", "|---|---|---|---|", *rows, ""]


def attribute_meanings(kind: type) -> dict[str, str]:
    """What the docstrings of a class and of its bases say about each attribute."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(base.__dict__.get("__doc__") or "")):
            first, _, rest = paragraph.partition("\n")
            if first == "Attributes:":
                entries = [entry.partition(": ") for entry in _joined(textwrap.dedent(rest))]
                found |= {name: meaning for name, _, meaning in entries}
    return found


def _setting(field: Any) -> str:
    words = field.metadata.get("help", "")
    if choices := field.metadata.get("choices"):
        words += f" One of: {', '.join(filter(None, choices))}."
    if owners := field.metadata.get("owners"):
        words += f" Only with --strategy {either(owners)}."
    words = name_settings(words)
    return f"| `{field.name}` | {_cell(words)} | {_code(field.type)} | `{field.default!r}` |"


def _code(kind: Any) -> str:
    return f"`{_cell(str(kind))}`"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _prose(docstring: str, is_dataclass: bool = False) -> list[str]:
    """A docstring as Markdown: its sections become lists, its examples become blocks of code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        if not paragraph:
            continue
        first, *rest = paragraph.splitlines()
        found = _SECTION.match(first)
        if found and found[1] == "Attributes" and is_dataclass:
            continue  # the table has them
        if found and not found[1].startswith("Example"):
            lines += [f"**{found[1]}**", "", *_entries(found[1], textwrap.dedent("\n".join(rest))), ""]
        elif found or ">>>" in paragraph:
            example = textwrap.dedent("\n".join(rest)) if found else paragraph
            lines += ["```python", re.sub(r"  # doctest: \+\w+", "", example), "```", ""]
        else:
            lines += [*paragraph.splitlines(), ""]
    return lines


def _entries(section: str, text: str) -> list[str]:
    """The entries of a section as a list; an entry that starts with a name shows the name as code."""
    if section in ("Returns", "Yields"):
        return [" ".join(text.split())]
    return ["- " + _ENTRY.sub(r"`\1`: ", entry) for entry in _joined(text)]


def _joined(text: str) -> list[str]:
    """The entries of a section, each on one line."""
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        else:
            entries.append(line.strip())
    return entries


def main() -> None:
    PAGE.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
