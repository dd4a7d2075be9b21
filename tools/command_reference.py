"""Writes docs/reference/commands.md from the help of the commands: `python tools/command_reference.py`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import typer

from tenor.cli import COMMANDS, build_app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
_SHARED = ("json", "debug", "help")
_HEAD = """# Commands

`make docs` writes this page from the help of the commands, and a test fails if they differ.

Every command also takes `--json` (one JSON object on standard output, everything else on standard error), `--debug`
(tracebacks instead of one-line errors) and `--help`. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 or 143
stopped by a signal after saving. `tenor --install-completion` sets up completion for your shell.
"""


def render() -> str:
    """Return the whole page."""
    group: Any = typer.main.get_command(build_app())
    return "\n".join([_HEAD, *(_section(name, group.commands[name]) for name in COMMANDS)])


def _section(name: str, command: Any) -> str:
    text, _, example = inspect.cleandoc(command.help).partition("[dim]Example:[/dim]")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name not in _SHARED]
    usage = " ".join(["tenor", name, *(_argument(a) for a in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"## tenor {name}", "", text.strip(), "", f"    {usage}", "", f"Example: `{example.strip()}`", ""]
    tables: dict[str | None, list[tuple[str, str, str]]] = {
        None: [(f"`{_argument(a)}`", a.help, "") for a in arguments]
    }
    for option in options:
        tables.setdefault(option.rich_help_panel, []).append(_option(option))
    for heading, rows in tables.items():
        lines += [f"**{heading}**", ""] if heading else []
        lines += ["| name | meaning | default |", "|---|---|---|"] if rows else []
        lines += [f"| {_cell(name)} | {_cell(help_text)} | {default} |" for name, help_text, default in rows]
        lines += [""] if rows else []
    return "\n".join(lines)


def _argument(argument: Any) -> str:
    word = argument.metavar or argument.name.upper()
    return f"{word}…" if argument.nargs == -1 and not word.endswith((".", "…")) else word


def _option(option: Any) -> tuple[str, str, str]:
    flags = "/".join([*option.opts, *option.secondary_opts])
    default = "" if option.default in (None, "", ()) or callable(option.default) else f"`{_plain(option.default)}`"
    return f"`{flags}`", option.help, "required" if option.required else default


def _plain(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _cell(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|")


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
