"""Finds what a stranger's words would make of a page if they were not escaped."""

from __future__ import annotations

from html.parser import HTMLParser

EVIL = ("<script>alert(1)</script>", '" onload="alert(1)', "' onload='alert(1)")


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"<{tag} {name}>" for name, _ in attrs if name.startswith("on")]
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script" and data.startswith("alert(1)"):
            self.found.append("<script>")


def foreign_code(page: str) -> list[str]:
    """Scripts of `EVIL` and event handlers in a page; Tenor's own pages have none of either."""
    finder = _Finder()
    finder.feed(page)
    finder.close()
    return finder.found
