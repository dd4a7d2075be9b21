"""Writes src/tenor/options.py, the keywords of the public functions for editors, from the settings classes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import tenor

MODULE = Path(__file__).resolve().parent.parent / "src" / "tenor" / "options.py"
_HEAD = '''"""The settings as types of keywords, for editors and type checkers. `make docs` writes this file."""

from __future__ import annotations

from typing import TypedDict
'''


def render() -> str:
    """Return the whole module."""
    kinds = [getattr(tenor, name) for name in tenor.__all__ if name.endswith("Settings")]
    return "\n\n".join([_HEAD, *map(_class, kinds)])


def _class(kind: Any) -> str:
    name = kind.__name__
    lines = [f"class {name.removesuffix('Settings')}Options(TypedDict, total=False):"]
    lines += [f'    """The fields of `tenor.{name}`, where each is explained."""', ""]
    lines += [f"    {field.name}: {field.type}" for field in dataclasses.fields(kind)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    MODULE.write_text(render(), "utf-8")
