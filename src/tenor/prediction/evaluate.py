"""`tenor.evaluate`: the metrics of a run on prepared data or on a raw file, always beside the majority baseline."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tenor.corpus.columns import Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.frames import ACCEPTED, FRAME, Frame, FrameFile, is_frame, save_frame
from tenor.corpus.labels import LabelRule
from tenor.corpus.pieces import Piece
from tenor.corpus.sources import find_sources
from tenor.engines.local import LocalEngine
from tenor.engines.protocol import Engine
from tenor.engines.stage import JobStage
from tenor.environment import num_threads, num_workers
from tenor.errors import CorpusError, RunError, StoreError, UsageError
from tenor.evaluation.label_check import check_labels
from tenor.evaluation.labelled import choose_rule
from tenor.evaluation.metrics import Evaluation, measure, measure_covered
from tenor.evaluation.scores import Scores
from tenor.evaluation.sections import LabelledPiece, SplitSection, cut_split, read_scores, score, write_scores
from tenor.evaluation.survey import PieceSurvey, check_survey, join_surveys, survey_piece
from tenor.prediction.pieces import cut_into_pieces
from tenor.prediction.settings import EvaluateSettings
from tenor.prediction.titles import open_with_title, title_of
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.preparation.job.accounting import RowCounts
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress, Shown, shown
from tenor.runtime.model import SentimentModel
from tenor.settings import changed, chosen, option_name
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split
from tenor.store.trusted import read_json
from tenor.threads import describe_team

if TYPE_CHECKING:
    from tenor.options import EvaluateOptions

MAX_BYTES = 16 << 20  # of result.json
_LABELS = ("labels", "negative", "positive")
_FOR_PREPARED = {"split", "abstain_below", "workers", "threads", "max_rejects"}  # the others say how to read raw files


@dataclass(frozen=True)
class SurveyTask:
    """Account for the rows of one piece of a raw file."""

    model: ModelRef
    rows: LabelledPiece


@dataclass(frozen=True)
class ScoreTask:
    """Score some rows, and write the scores to a file."""

    model: ModelRef
    rows: LabelledPiece | SplitSection
    out: str
    threads: int
    workers: int  # processes that score at the same time


@dataclass(frozen=True)
class ScoreResult:
    rows: int


@dataclass(frozen=True)
class SelectedRows:
    """All rows to score, and the accounting of the rows that were read."""

    rows: Sequence[LabelledPiece | SplitSection]
    counts: RowCounts


def evaluate(
    run: str | Path,
    data: str | Path | Frame,
    settings: EvaluateSettings | None = None,
    progress: Shown = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Measure a run on a split of prepared data, or on every labelled row of a raw file.

    The metrics do not depend on the number of workers.

    Args:
        run: A folder made by `tenor train`.
        data: A folder made by `tenor prepare`, a raw file with labels, or a table in memory, as for `prepare`.
        settings: The split, how to read a raw file, and the number of workers.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The metrics, those of the majority baseline, and the number of rows: `rows_read` = `rows` (measured) + `dropped`
        + `rejected`, as prepare counts them. Duplicates are measured.

    Raises:
        RunError: The run folder cannot be used.
        StoreError: The prepared data is damaged, or was prepared with another vocabulary, tokeniser or other classes.
        CorpusError: The raw file or the table cannot be read, or too many of its rows are rejected.
        UsageError: The labels of the raw file cannot mean the same as those of the run's data.

    >>> tenor.evaluate("run", "data").accuracy  # doctest: +SKIP
    0.871
    """
    settings, progress = chosen(EvaluateSettings, settings, options), shown(progress)
    ref = ModelRef.of(run)
    if isinstance(data, str | Path):
        return _evaluate(ref, data, settings, progress)
    if not is_frame(data):
        what = f"a value of type {type(data).__name__} is neither the name of a file or folder nor a data frame"
        raise UsageError(what, remedy=f"give a name, or {ACCEPTED}")
    title = title_of(model_of(ref).config) if settings.title_column is None else None
    with tempfile.TemporaryDirectory(prefix="tenor-") as folder:
        saved = save_frame(data, settings.wanted, Path(folder), [title] if title else [])
        return _evaluate(ref, saved, settings, progress)


def _evaluate(
    ref: ModelRef, data: str | Path | FrameFile, settings: EvaluateSettings, progress: Progress
) -> Evaluation:
    model = model_of(ref)
    engine = LocalEngine(num_workers(settings.workers))
    try:
        selected = select_rows(ref, data, settings, engine, progress)
        workers = min(engine.workers, len(selected.rows))
        progress.say(f"evaluating: {describe_team(workers, num_threads(settings.threads, workers))}")
        progress.start("evaluate", selected.counts.kept, "row")
        if workers == 1:
            scores = _score_here(model, selected.rows, settings.threads, progress)
        else:
            scores = _score_on(engine, ref, selected.rows, settings.threads, progress)
    finally:
        progress.finish()
        engine.close()
    metrics, counts = measure(scores, model.classes), selected.counts
    rows = {"rows_read": counts.read, "dropped": counts.dropped, "rejected": counts.rejected}
    values: dict[str, Any] = {**vars(metrics), **rows, **measure_covered(scores, settings.abstain_below)}
    return Evaluation(**values, train_rows=_train_rows(Path(ref.run)))


def _train_rows(run: Path) -> int | None:
    """How many rows the model learned from; None if the run is unfinished, or a file of weights alone."""
    try:
        rows = read_json(run / "result.json", MAX_BYTES, RunError).get("train_rows")
    except (OSError, RunError):  # the metrics do not need it
        return None
    return rows if type(rows) is int and rows >= 0 else None


def select_rows(
    ref: ModelRef, data: str | Path | FrameFile, settings: EvaluateSettings, engine: Engine, progress: Progress
) -> SelectedRows:
    """The rows of a split or of a raw file, once they are known to fit the run."""
    if isinstance(data, str | Path) and Path(data).is_dir():
        if ignored := sorted(changed(settings) - _FOR_PREPARED):
            names = ", ".join(map(option_name, ignored))
            progress.warn(f"no effect on prepared data, which has been read already: {names}")
        return _select_split(model_of(ref), Path(data), settings.split, engine.workers, progress)
    if settings.split != EvaluateSettings.split:
        progress.warn(f"--split {settings.split} has no effect on a raw file, which is measured as a whole")
    return _select_raw(ref, data, settings, engine, progress)


def _select_split(model: SentimentModel, data: Path, name: str, workers: int, progress: Progress) -> SelectedRows:
    """The rows of a split, once its data is known to fit the run."""
    manifest = Manifest.load(data)
    if manifest.vocab_sha256 != model.config["vocab_sha256"]:
        remedy = "evaluate on the raw file, or prepare it with --vocab and the data this run was trained on"
        raise StoreError("was prepared with another vocabulary than the run's", where=data, remedy=remedy)
    if (list(manifest.classes), manifest.tokeniser) != (list(model.classes), model.config["tokeniser"]):
        remedy = "evaluate on the raw file, or prepare it with the label and word options of the run's data"
        raise StoreError(
            "was prepared with other classes or another tokeniser than the run's", where=data, remedy=remedy
        )
    if name not in manifest.splits:
        raise StoreError(f"has no split {name!r}", where=data, remedy=f"choose one of {', '.join(manifest.splits)}")
    rows = manifest.splits[name].rows
    if not rows:
        raise StoreError(f"the split {name} has no rows", where=data, remedy="choose another with --split")
    if bool(manifest.text) != bool(title_of(model.config)):
        how = ("with", "without") if manifest.text else ("without", "with")
        progress.warn(f"{data}: was prepared {how[0]} titles before the texts, the run's data {how[1]} them")
    if why := _learned_from(model.config, manifest, name):
        progress.warn(f"{data}: the model has learned from these rows ({why}), so it does worse on new reviews")
    with open_split(data, name):  # verified once here; the sections rely on it
        pass
    counts = RowCounts(read=rows, kept=rows, duplicates=0, dropped={}, rejected={})
    return SelectedRows(cut_split(data, name, workers), counts)


def _learned_from(config: dict[str, Any], manifest: Manifest, split: str) -> str:
    """Why a run has seen a split of this data in training; empty if it has not."""
    settings = config.get("settings")
    if config.get("data_sha256") != manifest.sha256:
        return ""
    if isinstance(settings, dict) and settings.get("all_rows"):
        return "--all-rows"
    return "--split train" if split == "train" else ""


def _select_raw(
    ref: ModelRef, data: str | Path | FrameFile, settings: EvaluateSettings, engine: Engine, progress: Progress
) -> SelectedRows:
    """The labelled rows of a raw file, once its labels are known to fit the run."""
    model, source = model_of(ref), FRAME if isinstance(data, FrameFile) else str(data)
    sources = open_with_title(
        lambda title: _find(data, replace(settings.wanted, title=title)),
        model.config,
        settings.title_column,
        source,
        progress,
    )
    is_asked = any(getattr(settings, name) is not None for name in _LABELS)
    rule = _rule(model, settings, is_asked, sources)
    pieces = cut_into_pieces(sources, engine.workers, progress)
    rows = [LabelledPiece(piece, rule) for piece in pieces]
    surveys = _survey(engine, ref, rows, progress)
    survey = join_surveys(pieces, surveys, rule)
    if not is_asked and (warning := check_labels(survey, rule, source)):
        progress.warn(warning)
    check_survey(pieces, surveys, settings.max_rejects)
    if not survey.rows.kept:
        raise CorpusError("has no rows to measure", where=source, remedy="give a file with labelled reviews")
    return SelectedRows(rows, survey.rows)


def _find(data: str | Path | FrameFile, wanted: Wanted) -> list[Source]:
    if isinstance(data, FrameFile):
        return data.find(wanted)
    found = find_sources([data], wanted)
    if wanted.title and all(file.columns is None for file in found):
        raise CorpusError(f"has no columns, so none called {wanted.title!r}", where=data, remedy="omit --title-column")
    return found


def _rule(model: SentimentModel, settings: EvaluateSettings, is_asked: bool, sources: list[Source]) -> LabelRule:
    """The label rule of the run's data, unless the settings give another one."""
    given = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name in _LABELS}
    reading = PrepareSettings(**{name: value for name, value in given.items() if value is not None})
    known = None if is_asked else model.config.get("labels")  # runs of older versions do not store it
    rule = choose_rule(sources, reading, known and LabelRule.from_dict(known))
    if rule.classes != model.classes:
        raise CorpusError(
            f"the labels make the classes {', '.join(rule.classes)}, but the run has {', '.join(model.classes)}",
            remedy="give the label options that the run's data was prepared with",
        )
    return rule


def _survey(engine: Engine, ref: ModelRef, rows: Sequence[LabelledPiece], progress: Progress) -> list[PieceSurvey]:
    pieces: list[Piece] = [selected.piece for selected in rows]
    progress.start("read", sum(piece.size for piece in pieces), "B")
    try:
        tasks = [SurveyTask(ref, selected) for selected in rows]
        return survey_rows.run(engine, tasks, lambda result: progress.advance(result.counts.bytes))
    finally:
        progress.finish()


@JobStage
def survey_rows(task: SurveyTask) -> PieceSurvey:
    """Account for the rows of one piece."""
    return survey_piece(task.rows.piece, task.rows.rule, model_of(task.model).encoder)


def _score_here(
    model: SentimentModel, rows: Sequence[LabelledPiece | SplitSection], threads: int, progress: Progress
) -> Scores:
    """Score all rows in this process."""
    model.threads = num_threads(threads, 1)
    scores = Scores(model.threshold)
    for selected in rows:
        for chances, labels in score(model, selected):
            scores.add(chances, labels)
            progress.advance(len(labels))
    return scores


def _score_on(
    engine: Engine, ref: ModelRef, rows: Sequence[LabelledPiece | SplitSection], threads: int, progress: Progress
) -> Scores:
    """Score all rows on the engine's workers."""
    scores, workers = Scores(model_of(ref).threshold), min(engine.workers, len(rows))
    with tempfile.TemporaryDirectory(prefix="tenor-") as folder:
        files = [Path(folder, f"{number}.npz") for number in range(len(rows))]
        tasks = [
            ScoreTask(ref, selected, str(file), threads, workers) for selected, file in zip(rows, files, strict=True)
        ]
        score_rows.run(engine, tasks, lambda result: progress.advance(result.rows))
        for file in files:
            read_scores(file, scores)
    return scores


@JobStage
def score_rows(task: ScoreTask) -> ScoreResult:
    """Score some rows, and write the scores to a file."""
    model, scores = model_of(task.model), Scores()
    model.threads = num_threads(task.threads, task.workers)
    for chances, labels in score(model, task.rows):
        scores.add(chances, labels)
    write_scores(Path(task.out), scores, len(model.classes))
    return ScoreResult(len(scores))
