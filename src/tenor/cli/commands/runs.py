"""`tenor runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import UsageError
from tenor.reports.settings import RunsSettings

if TYPE_CHECKING:
    from tenor.reports.runs.comparison import RunComparison
    from tenor.reports.runs.listing import RunSummary

_COLUMNS = {
    "date": "date",
    "state": "state",
    "model": "model",
    "cell": "cell",
    "strategy": "strategy",
    "workers": "workers",
    "epochs": "epochs",
    "train_rows": "train rows",
    "seconds": "seconds",
    "vector_seconds": "vector s",
    "samples_per_s": "samples/s",
    "valid_accuracy": "validation",
    "test_accuracy": "test",
}
_FOLDERS = "Run folders, or folders that contain some up to three levels deep. Default: the current folder."


@command(example="tenor runs runs/ --where cell=gru --sort -test_accuracy", settings=RunsSettings)
def runs(
    console: Console,
    settings: RunsSettings,
    folders: Annotated[
        list[Path] | None, typer.Argument(help=_FOLDERS, metavar="[FOLDER]...", show_default=False)
    ] = None,
) -> None:
    """List, filter and compare run folders.

    With --compare, every run is compared with the first one: which settings differ, which rows the runs judge
    differently, and which run is better. McNemar's paired test says whether the difference may be chance.
    """
    from tenor.reports.runs.listing import find_runs

    found = find_runs(folders or [Path()], settings)
    for folder, reason in found.skipped.items():
        console.say(f"skipped {folder}: {reason.removeprefix(f'{folder}: ')}")
    listed: dict[str, Any] = {"runs": [run.as_dict() for run in found.runs], "skipped": found.skipped}
    if not settings.compare:
        console.result(listed, _listing(found.runs))
        return
    if len(found.runs) < 2:
        what = f"--compare needs at least two runs, and there are {len(found.runs)}"
        raise UsageError(what, remedy="give more run folders, or loosen --where")
    pairs = _compare(found.runs, settings, console)
    human = "\n\n".join([_listing(found.runs), *map(_comparison, pairs)])
    console.result({**listed, "comparisons": [pair.as_dict() for pair in pairs]}, human)


def _compare(found: list[RunSummary], settings: RunsSettings, console: Console) -> list[RunComparison]:
    from tenor.reports.runs.comparison import compare_runs

    first, *others = found
    return [compare_runs(first.run, other.run, settings, console.progress()) for other in others]


def _listing(found: list[RunSummary]) -> str:
    if not found:
        return "no runs"
    from tenor.reports.values import readable

    values = [run.values for run in found]
    shown = {name: title for name, title in _COLUMNS.items() if any(one[name] is not None for one in values)}
    rows = [[readable(one["run"]), *(one[name] for name in shown)] for one in values]
    return table(["run", *shown.values()], rows)


def _comparison(pair: RunComparison) -> str:
    lines = [f"{pair.first} (first) and {pair.second} (second)", ""]
    settings = [[name, *(_shown(value) for value in values)] for name, values in pair.settings.items()]
    lines += [table(["setting", "first", "second"], settings) if settings else "all settings are the same", ""]
    if pair.test is None:
        return "\n".join([*lines, f"rows cannot be compared: {pair.reason}; name rows to compare on with --data"])
    test = pair.test
    right = [test.both_right + test.only_first, test.both_right + test.only_second]
    lines += [
        f"{test.rows:,} {pair.measured_on}: the first got {right[0]:,} right ({right[0] / test.rows:.2%}), "
        f"the second {right[1]:,} ({right[1] / test.rows:.2%})",
        f"judged differently: {test.flipped:,}; only the first right: {test.only_first:,}, only the second right: "
        f"{test.only_second:,}",
        f"difference: {100 * test.difference:+.2f} points of accuracy, 95 % interval {100 * test.low:+.2f} to "
        f"{100 * test.high:+.2f}",
        f"McNemar's test: p = {test.p_mid:.3g} (mid-p), {test.p_exact:.3g} (exact)",
        f"better: {pair.better}" if pair.better else "better: neither; the difference may be chance",
    ]
    if pair.flips:
        lines += ["", _flips(pair)]
    return "\n".join(lines)


def _flips(pair: RunComparison) -> str:
    head = ["judged differently", "true class", "first", "second", "p(true), first", "p(true), second"]
    rows: list[list[Any]] = [
        [f.place, f.label, f.first, f.second, f"{f.first_probability:.2f}", f"{f.second_probability:.2f}"]
        for f in pair.flips
    ]
    if any(flip.words for flip in pair.flips):
        head.append("words")
        rows = [[*row, flip.words[:80]] for row, flip in zip(rows, pair.flips, strict=True)]
    return table(head, rows)


def _shown(value: Any) -> str:
    from tenor.reports.values import readable

    text = "–" if value is None else readable(str(value))
    return text if len(text) <= 40 else f"{text[:39]}…"
