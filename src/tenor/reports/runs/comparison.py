"""Compares two runs: settings that differ, rows that they judge differently, and which one is better."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tenor.errors import UsageError
from tenor.evaluation.paired import PairedTest, paired_test
from tenor.progress import Progress, Shown, shown
from tenor.reports.runs.data import RunData, read_run
from tenor.reports.runs.judged import JudgedRows, common_rows, stored_rows, why_not_same_rows
from tenor.reports.settings import RunsSettings
from tenor.reports.values import readable
from tenor.settings import chosen

if TYPE_CHECKING:
    from tenor.options import RunsOptions
    from tenor.reports.runs.scoring import Selected

_COMPARED = ("classes", "data_sha256", "vocab_sha256", "max_length")  # parts of the config beside the settings


@dataclass(frozen=True)
class FlippedRow:
    """A row that two runs judge differently.

    Attributes:
        place: The number of the row in its split, counted from 0, or file and line.
        label: The true class.
        first: The class that the first run predicts.
        second: The class that the second run predicts.
        first_probability: The probability that the first run gives the true class.
        second_probability: The probability that the second run gives the true class.
        words: The first words of the row, if the data was given.
    """

    place: str
    label: str
    first: str
    second: str
    first_probability: float
    second_probability: float
    words: str = ""


@dataclass(frozen=True)
class RunComparison:
    """What is different between two runs.

    Attributes:
        first: Folder of the first run.
        second: Folder of the second run.
        settings: Settings that differ: name → values of both runs.
        measured_on: The rows that both judged, such as `test rows`; empty if there are none.
        reason: Why no rows could be compared, or empty.
        test: The paired test on these rows.
        flips: Rows judged differently, the largest differences first.
    """

    first: str
    second: str
    settings: dict[str, tuple[Any, Any]]
    measured_on: str
    reason: str
    test: PairedTest | None
    flips: list[FlippedRow]

    @property
    def better(self) -> str | None:
        """The folder of the better run; None if the difference may be chance, or nothing could be compared."""
        if self.test is None or self.test.better == "neither":
            return None
        return self.first if self.test.better == "first" else self.second

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values.

        >>> tenor.compare_runs("run", "run-gru").as_dict()["better"]  # doctest: +SKIP
        'run-gru'
        """
        values = dataclasses.asdict(self)
        return {**values, "settings": {name: list(pair) for name, pair in self.settings.items()}, "better": self.better}


def compare_runs(
    first: str | Path,
    second: str | Path,
    settings: RunsSettings | None = None,
    progress: Shown = None,
    **options: Unpack[RunsOptions],
) -> RunComparison:
    """Compare two runs on the same rows.

    Args:
        first: A run folder.
        second: Another run folder.
        settings: `data` and `split` choose the rows; without `data` these are the test rows whose scores both runs
            stored. `flips` limits the rows that are listed.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The settings that differ, the rows that the runs judge differently, and McNemar's test. If the runs stored no
        scores of the same rows, there is no test, and `reason` says why.

    Raises:
        RunError: A run folder cannot be used.
        UsageError: The rows of `data` cannot be compared.

    >>> tenor.compare_runs("run", "run-gru").test.p_mid  # doctest: +SKIP
    0.013
    """
    asked, progress = chosen(RunsSettings, settings, options), shown(progress)
    one, other = (read_run(Path(folder), only_result=True) for folder in (first, second))
    names = (str(first), str(second))
    if asked.data is not None:
        return _on_data(names, (one, other), asked, progress)
    rows = stored_rows(one), stored_rows(other)
    if reason := why_not_same_rows(one, other, *rows):
        return RunComparison(*names, _differing_pair((one, other)), "", reason, None, [])
    assert rows[0] is not None and rows[1] is not None
    pair = common_rows(rows[0], rows[1])
    return _compare(names, (one, other), pair, "test rows", _flips(pair, one.classes, asked.flips, None))


def _on_data(
    names: tuple[str, str], runs: tuple[RunData, RunData], asked: RunsSettings, progress: Progress
) -> RunComparison:
    from tenor.reports.runs.scoring import judge  # loads torch

    assert asked.data is not None
    if runs[0].classes != runs[1].classes:
        classes = [", ".join(run.classes) for run in runs]
        raise UsageError(f"the runs have different classes ({classes[0]}; {classes[1]})", remedy="compare other runs")
    one, selected = judge(Path(names[0]), asked.data, asked.split, progress)
    other, _ = judge(Path(names[1]), asked.data, asked.split, progress)
    pair = common_rows(one, other)
    flips = _flips(pair, runs[0].classes, asked.flips, (Path(names[0]), selected))
    split = f"{asked.split} rows of " if Path(asked.data).is_dir() else "rows of "
    return _compare(names, runs, pair, split + asked.data, flips)


def _compare(
    names: tuple[str, str],
    runs: tuple[RunData, RunData],
    pair: tuple[JudgedRows, JudgedRows],
    measured_on: str,
    flips: list[FlippedRow],
) -> RunComparison:
    test = paired_test(pair[0].predicted, pair[1].predicted, pair[0].labels)
    return RunComparison(*names, _differing_pair(runs), measured_on, "", test, flips)


def _differing_pair(runs: tuple[RunData, RunData]) -> dict[str, tuple[Any, Any]]:
    return {name: (one, other) for name, (one, other) in differing_settings(runs).items()}


def differing_settings(runs: Sequence[RunData]) -> dict[str, list[Any]]:
    """Return the settings that are not the same in all runs, with the value of each run; None where one has none."""
    configs = [{**run.settings, **{name: run.config.get(name) for name in _COMPARED}} for run in runs]
    names = dict.fromkeys(name for config in configs for name in config)
    found = {readable(name)[:60]: [config.get(name) for config in configs] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def _flips(
    pair: tuple[JudgedRows, JudgedRows], classes: list[str], most: int, source: tuple[Path, Selected] | None
) -> list[FlippedRow]:
    """Return the rows judged differently, those with the largest change of the true class's probability first."""
    one, other = pair
    first, second, labels = one.predicted, other.predicted, one.labels
    before, after = one.of_label(labels), other.of_label(labels)
    rows = np.flatnonzero(first != second)
    rows = rows[np.argsort(-np.abs(after - before)[rows], kind="stable")][:most]
    places = [(int(file), int(place)) for file, place in one.where[rows]]
    described = _describe(places, source)
    return [
        FlippedRow(
            place=described[place][0],
            label=classes[labels[row]],
            first=classes[first[row]],
            second=classes[second[row]],
            first_probability=float(before[row]),
            second_probability=float(after[row]),
            words=described[place][1],
        )
        for row, place in zip(rows.tolist(), places, strict=True)
    ]


def _describe(
    places: Sequence[tuple[int, int]], source: tuple[Path, Selected] | None
) -> dict[tuple[int, int], tuple[str, str]]:
    """Return where each row is, and its first words if the data was given."""
    if source is None:
        return {place: (f"row {place[1]}", "") for place in places}
    from tenor.reports.runs.scoring import place_of, words_of  # loads torch

    words = words_of(source[0], source[1], places)
    return {place: (place_of(source[1], place), readable(words.get(place, ""))) for place in places}
