"""The title column of a run's texts: the one that its data was prepared with, unless the caller names another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tenor.errors import CorpusError
from tenor.progress import Progress

T = TypeVar("T")


def title_of(config: dict[str, Any]) -> str | None:
    """The title column of the run's data; None if it had none, or if an older version made the run."""
    title: str | None = config.get("text", {}).get("title_column")
    return title


def open_with_title(
    look: Callable[[str | None], T], config: dict[str, Any], asked: str | None, where: str, progress: Progress
) -> T:
    """Open an input with the right title column.

    Args:
        look: Opens the input with a title column, or without one (None). It raises CorpusError if the input does not
            have the column.
        config: The run's config.
        asked: The column that the caller named, which must exist. An empty name means no title; None means the title
            column of the run's data.
        where: The name of the input.
        progress: Gets a warning if the input lacks the title column of the run's data. This is not an error: a text
            without its title is still a review, and the run's data may contain such reviews too.

    Returns:
        What `look` returns.
    """
    title = title_of(config) if asked is None else asked or None
    if asked is not None or title is None:
        return look(title)
    try:
        return look(title)
    except CorpusError:
        found = look(None)
    warn_of_no_title(title, where, progress)
    return found


def warn_of_no_title(title: str, where: str, progress: Progress) -> None:
    """Warn that the input has no such title column."""
    progress.warn(
        f"{where}: has no column {title!r}, the title column of the run's data; texts are read without a title "
        "(name another column with --title-column)"
    )
