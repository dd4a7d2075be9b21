"""`tenor.report`: one self-contained HTML file about runs, results and word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tenor.errors import RunError, UsageError
from tenor.reports import page
from tenor.reports.page import Section
from tenor.reports.registry import priced
from tenor.reports.result_file import ResultData, join_scaling, read_result
from tenor.reports.runs.data import RunData, read_run
from tenor.reports.sections.result import result_section
from tenor.reports.sections.run import run_section
from tenor.reports.sections.side_by_side import side_by_side
from tenor.reports.sections.vectors import vectors_section
from tenor.reports.settings import ReportSettings
from tenor.reports.values import counted, number
from tenor.reports.vectors_data import VectorsData, holds_vectors, read_vectors
from tenor.settings import chosen
from tenor.store.atomic import check_target, write_bytes

if TYPE_CHECKING:
    from tenor.options import ReportOptions

MOST_SOURCES = 40
_FOOTER = "Written by Tenor. This page is self-contained: it loads nothing from the network."

Source = RunData | ResultData | VectorsData


def report(
    sources: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    settings: ReportSettings | None = None,
    **options: Unpack[ReportOptions],
) -> Path:
    """Write one self-contained HTML file about runs, results and word vectors.

    One run gets a page of its own; several runs are shown side by side. Each result of `tenor bench` or `tenor plan`
    gets a section. Word vectors get a map of their commonest words; if there are runs as well, the classifier of the
    first one colours the words. Every plot can be saved as PNG and its data as CSV from the page.

    Args:
        sources: Run folders, folders of word vectors, and result files in JSON.
        out: The file to write. Default: for one folder, `report.html` in it; for one result, the file with its
            name and the suffix `.html` beside it; for several sources, `report.html` in the current folder.
        settings: The price of a worker, for plots against dollars.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The path of the file.

    Raises:
        RunError: A run or word vectors cannot be read, or the file cannot be written.
        UsageError: A result file is damaged or of another version, there are too few words for a map, or `out` is not a
            path that can be written.

    >>> tenor.report(["run", "run-gru"], "compare.html")  # doctest: +SKIP
    PosixPath('compare.html')
    """
    settings = chosen(ReportSettings, settings, options)
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    paths = list(dict.fromkeys(Path(source) for source in given))
    if not 1 <= len(paths) <= MOST_SOURCES:
        remedy = f"give 1 to {MOST_SOURCES} run folders or result files"
        raise UsageError(f"cannot report on {counted(len(paths), 'source')}", remedy=remedy)
    read = read_sources(paths)
    _refuse_price(read, settings.price)
    target = Path(out) if out is not None else default_target(paths)
    check_target(target)
    write_page(target, render(read, settings))
    return target


def _refuse_price(sources: Sequence[Source], price: float) -> None:
    """Refuse a price that no source can be priced with."""

    def has_cost(source: Source) -> bool:
        if isinstance(source, RunData):
            return None not in [number(source.result.get(name)) for name in ("workers", "seconds")]
        return isinstance(source, ResultData) and bool(priced(source, price))

    if price and not any(map(has_cost, sources)):
        what = f"--price {price:g} has no effect: no source has workers, seconds and an accuracy"
        raise UsageError(what, remedy="omit it, or add a run folder that has finished")


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """Read runs, results and word vectors. A path that does not exist and has no suffix is taken for a run folder."""
    vectors = [path for path in paths if holds_vectors(path)]
    runs = [path for path in paths if path not in vectors and (path.is_dir() or not (path.exists() or path.suffix))]
    read: list[Source] = []
    for path in paths:
        if path in vectors:
            read.append(read_vectors(path, runs[0] if runs else None))
        else:
            read.append(read_run(path) if path in runs else read_result(path))
    return read


def default_target(paths: Sequence[Path]) -> Path:
    """Return where the page is written if the caller does not say."""
    if len(paths) > 1:
        return Path("report.html")
    return paths[0] / "report.html" if paths[0].is_dir() else paths[0].with_suffix(".html")


def write_page(out: Path, text: str) -> None:
    """Write a page, whole or not at all."""
    try:
        write_bytes(out, text.encode("utf-8", "replace"))
    except OSError as error:
        what = f"cannot write the report: {error.strerror}"
        raise RunError(what, where=out, remedy="choose another path with --out") from error


def render(sources: Sequence[Source], settings: ReportSettings) -> str:
    """Return the whole page."""
    runs = [source for source in sources if isinstance(source, RunData)]
    results = join_scaling([source for source in sources if isinstance(source, ResultData)])
    maps = [source for source in sources if isinstance(source, VectorsData)]
    sections = [run_section(runs[0], settings)] if len(runs) == 1 else [side_by_side(runs, settings)] if runs else []
    sections += [result_section(result, settings) for result in results]
    sections += [vectors_section(vectors) for vectors in maps]
    footer = f"<footer>{_FOOTER}</footer>"
    if len(sections) == 1:
        only = sections[0]
        header = f"<header><h1>{escape(only.title)}</h1>{''.join(only.head)}</header>"
        return page.page(f"{only.title} – Tenor report", [header, *only.body, footer])
    kinds = ((runs, "run"), (results, "result"), (maps, "word map"))
    title = " and ".join(counted(len(some), name) for some, name in kinds if some)
    contents = "".join(f'<li><a href="#part-{i}">{escape(s.title)}</a></li>' for i, s in enumerate(sections))
    header = f'<header><h1>{escape(title)}</h1><ul class="contents">{contents}</ul></header>'
    return page.page(f"{title} – Tenor report", [header, *map(_part, range(len(sections)), sections), footer])


def _part(number: int, section: Section) -> str:
    """Return one of several sections; its cards get smaller headings."""
    body = "".join(section.body).replace("<h2>", "<h3>").replace("</h2>", "</h3>")
    head = f"<header><h2>{escape(section.title)}</h2>{''.join(section.head)}</header>"
    return f'<section class="part" id="part-{number}">{head}{body}</section>'
