"""`tenor.find_insights`: what customers say, from raw files and a run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tenor.corpus.frames import refuse_frame
from tenor.corpus.labels import NEUTRAL
from tenor.corpus.pieces import Piece
from tenor.engines.choose import make_engine
from tenor.errors import CorpusError
from tenor.evaluation.survey import PieceSurvey, check_survey
from tenor.insights.label_errors import label_errors
from tenor.insights.near_duplicates import NearDuplicates
from tenor.insights.phrases.finding import Periods, PhraseFinder, PhraseInput
from tenor.insights.reading import beside, open_inputs
from tenor.insights.row_store import RowStore
from tenor.insights.rows import RowsResult, RowsTask, score_piece
from tenor.insights.scoring import RunScorer, Sides
from tenor.insights.settings import InsightsSettings
from tenor.insights.shares import by_group, over_time, share
from tenor.insights.times import NO_DAY, choose_period, periods_of
from tenor.prediction.pieces import cut_into_pieces
from tenor.prediction.worker_model import ModelRef
from tenor.preparation.job.accounting import account, check_rows
from tenor.progress import Progress, Shown, shown
from tenor.settings import chosen

if TYPE_CHECKING:
    from tenor.options import InsightsOptions

Files = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Insights:
    """What `tenor insights` reports.

    Attributes:
        values: The values that the command prints as JSON.
    """

    values: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the values.

        >>> tenor.find_insights("run", "reviews.jsonl").as_dict()["negative_share"]  # doctest: +SKIP
        0.271
        """
        return self.values


def find_insights(
    run: str | Path,
    files: Files,
    settings: InsightsSettings | None = None,
    progress: Shown = None,
    **options: Unpack[InsightsOptions],
) -> Insights:
    """Find what the reviews in raw files say, according to the model of a run.

    Args:
        run: A folder made by `tenor train`.
        files: Files, folders or globs of reviews in any format that `prepare` reads. Ratings are optional.
        settings: Columns to group by and of dates, how to read the files, and where to score them.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        Shares of negative reviews with intervals, phrases that drive each side, rising phrases, worst groups, suspected
        label errors and near-duplicates. Every row is accounted for.

    Raises:
        RunError: The run folder cannot be used.
        CorpusError: A file cannot be read, or lacks a column.
        UsageError: The settings do not fit the files.

    >>> found = tenor.find_insights("run", "reviews.jsonl", by="asin")  # doctest: +SKIP
    >>> found.as_dict()["phrases"]["negative"][0]["phrase"]  # doctest: +SKIP
    'waste of money'
    """
    settings, progress = chosen(InsightsSettings, settings, options), shown(progress)
    refuse_frame(files, "save it as a file first, such as Parquet")
    given = [str(files)] if isinstance(files, str | Path) else [str(file) for file in files]
    ref = ModelRef.of(run)
    scorer = RunScorer(ref)
    folder = Path(tempfile.mkdtemp(prefix=".tenor-insights-", dir=Path.cwd() if settings.engine != "local" else None))
    try:
        pieces, results, paths = _score(ref, scorer, given, settings, folder, progress)
        rows = RowStore(paths, pieces, results, scorer.model.threshold)
        try:
            return Insights(_Analysis(rows, scorer, settings, folder, progress).values(_accounting(pieces, results)))
        finally:
            rows.close()
    finally:
        progress.finish()
        shutil.rmtree(folder, ignore_errors=True)


def _score(
    ref: ModelRef, scorer: RunScorer, files: list[str], settings: InsightsSettings, folder: Path, progress: Progress
) -> tuple[list[Piece], list[RowsResult], list[Path]]:
    """Read and score all files into row files."""
    inputs = open_inputs(files, scorer, settings, progress)
    sides = [
        dict(zip([source.shown for source in inputs.sources], found, strict=True))
        for found in (
            beside(inputs.sources, settings.by, "--by", settings.wanted),
            beside(inputs.sources, settings.time, "--time", settings.wanted),
        )
    ]
    engine = make_engine(settings)
    try:
        pieces = cut_into_pieces(inputs.sources, engine.workers, progress)
        paths = [folder / f"{number:06d}.arrow" for number in range(len(pieces))]
        workers = min(engine.workers, len(pieces))
        tasks = []
        for piece, path in zip(pieces, paths, strict=True):
            by, time = (side[piece.source.shown] for side in sides)
            tasks.append(RowsTask(ref, piece, inputs.rule, by, time, str(path), settings.threads, workers))
        progress.start("score", sum(piece.size for piece in pieces), "B")
        results = score_piece.run(engine, tasks, lambda result: progress.advance(result.counts.bytes))
        progress.finish()
    finally:
        engine.close()
    surveys = [PieceSurvey(result.counts, {}, (), result.first_reject) for result in results]
    check_rows([result.counts for result in results], pieces)
    check_survey(pieces, surveys, settings.max_rejects)
    if settings.time and (bad := [value for result in results for value in result.bad_times]):
        progress.warn(f"--time {settings.time}: some values are not dates, such as {bad[0]!r:.40}")
    return pieces, results, paths


def _accounting(pieces: Sequence[Piece], results: Sequence[RowsResult]) -> dict[str, Any]:
    counts = account([r.counts for r in results], duplicates=0, neutral=0, kept=sum(r.rows for r in results))
    dropped = {reason: rows for reason, rows in counts.dropped.items() if rows}
    files = list(dict.fromkeys(piece.source.shown for piece in pieces))
    return {"files": files, "rows_read": counts.read, "dropped": dropped, "rejected": counts.rejected}


@dataclass(frozen=True)
class _Analysis:
    """The reduce step: everything that is computed from the rows."""

    rows: RowStore
    scorer: RunScorer
    settings: InsightsSettings
    folder: Path
    progress: Progress

    def values(self, accounting: dict[str, Any]) -> dict[str, Any]:
        rows, settings = self.rows, self.settings
        if not len(rows):
            raise CorpusError("has no reviews with words", where=accounting["files"][0], remedy="give other files")
        negative = int(rows.is_negative.sum())
        total = share(negative, len(rows))
        values: dict[str, Any] = {
            "rows": len(rows),
            **accounting,
            "classes": list(self.scorer.classes),
            "negative_rows": negative,
            "negative_share": total["negative_share"],
            "negative_interval": [total["low"], total["high"]],
            **self._labelled(),
        }
        groups, num_groups, without = by_group(rows) if settings.by else ([], 0, 0)
        if settings.by and not num_groups:
            self.progress.warn(f"--by {settings.by}: no row has a text or number there, so there are no groups")
        values |= {"by": settings.by, "num_groups": num_groups, "rows_without_group": without, "groups": groups}
        periods = self._periods()
        values |= {
            "time": settings.time,
            "period": periods[1],
            "rows_without_date": int((rows.days == NO_DAY).sum()) if settings.time else 0,
            "over_time": over_time(rows.is_negative, periods[0].of_rows, periods[0].names),
        }
        alike = NearDuplicates(rows, settings.similarity, self.folder, self.progress)
        self.progress.say("finding phrases")
        given = PhraseInput(rows, self.scorer.words(), self.scorer.contributions(), periods[0], alike.copies())
        found = PhraseFinder(given, settings.phrases).find()
        values["rising"] = found.pop("rising")
        values["phrases"] = found
        self.progress.say("judging labels out of fold")
        values["label_errors"] = label_errors(rows, alike.first, self.scorer.classes, settings.suspects)
        values["near_duplicates"] = alike.listed()
        values["similarity"] = settings.similarity
        return values

    def _labelled(self) -> dict[str, Any]:
        """The share of negative labels, of rows that have one."""
        known = self.rows.labels[self.rows.labels != NEUTRAL]
        found = share(int(np.isin(known, Sides.of(len(self.scorer.classes)).negative).sum()), len(known))
        interval = [found["low"], found["high"]] if len(known) else None
        return {
            "labelled_rows": len(known),
            "labelled_negative_share": found["negative_share"],
            "labelled_negative_interval": interval,
        }

    def _periods(self) -> tuple[Periods, str | None]:
        days = self.rows.days
        known = days[days != NO_DAY]
        if not len(known):
            if self.settings.time:
                raise CorpusError(
                    f"column {self.settings.time!r} has no dates",
                    remedy="give --time a column of dates such as 2024-05-31, `05 31, 2024` or seconds since 1970",
                )
            return Periods(np.full(len(days), -1, np.int32), []), None
        period = choose_period(known) if self.settings.period == "auto" else self.settings.period
        return Periods(*periods_of(days, period)), period
