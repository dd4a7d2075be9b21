"""The rows that a run has judged, with its probabilities: those that the run stored, or rows that are scored now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.pieces import whole
from tenor.engines.local import LocalEngine
from tenor.errors import UsageError
from tenor.evaluation.metrics import decide
from tenor.evaluation.sections import LabelledPiece, SplitSection
from tenor.prediction.evaluate import select_rows
from tenor.prediction.model import SentimentModel
from tenor.prediction.settings import EvaluateSettings
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.progress import Progress
from tenor.reports.runs.data import RunData
from tenor.training.runs.row_scores import read_row_scores

_SHOWN_WORDS = 60

Selected = Sequence[LabelledPiece | SplitSection]


@dataclass(frozen=True)
class JudgedRows:
    """Rows with their labels, and the probabilities that one run gave them."""

    where: NDArray[np.int64]  # (rows, 2): number of the file, and the line or the number of the row
    labels: NDArray[np.int64]  # (rows,)
    probabilities: NDArray[np.float32]  # (rows,) of the second class, or (rows, classes)

    @property
    def predicted(self) -> NDArray[np.int64]:
        return decide(self.probabilities)

    def of_label(self, label: NDArray[np.int64]) -> NDArray[np.float32]:
        """The probability of one label per row."""
        if self.probabilities.ndim == 1:
            return np.where(label == 1, self.probabilities, 1 - self.probabilities)
        return self.probabilities[np.arange(len(label)), label]

    def take(self, rows: NDArray[np.int64]) -> JudgedRows:
        return JudgedRows(self.where[rows], self.labels[rows], self.probabilities[rows])


def stored_rows(run: RunData) -> JudgedRows | None:
    """Return the test rows whose scores the run stored; None if it stored none."""
    scores = read_row_scores(run.folder) if run.folder is not None else None
    if scores is None:
        return None
    probabilities, labels = scores.arrays()
    where = np.stack([np.zeros(len(labels), np.int64), np.arange(len(labels))], axis=1)
    return JudgedRows(where, labels, probabilities)


def why_not_same_rows(first: RunData, second: RunData, one: JudgedRows | None, other: JudgedRows | None) -> str:
    """Return why the stored rows of two runs cannot be compared; empty if they can."""
    for run, rows in ((first, one), (second, other)):
        if rows is None:
            return f"{run.name} has not stored the scores of its test rows"
    assert one is not None and other is not None
    if first.config.get("data_sha256") != second.config.get("data_sha256"):
        return "the runs were trained on different data"
    if first.classes != second.classes or not np.array_equal(one.labels, other.labels):
        return "the runs were measured on different rows"
    return ""


def judge(run: Path, data: str, split: str, progress: Progress) -> tuple[JudgedRows, Selected]:
    """Score the rows of prepared data or of a labelled raw file with the model of a run.

    Returns:
        The rows, in an order that does not depend on the run, and what they were read from.
    """
    ref, engine = ModelRef.of(run), LocalEngine(1)
    try:
        rows = select_rows(ref, data, EvaluateSettings(split=split), engine, progress).rows
    finally:
        engine.close()
    pieces = [one for one in rows if isinstance(one, LabelledPiece)]
    sources = {one.piece.source.shown: one.piece.source for one in pieces}  # each whole, so that lines are the file's
    selected = [replace(pieces[0], piece=whole(source)) for source in sources.values()] if pieces else rows
    return _score(model_of(ref), selected, progress), selected


def _score(model: SentimentModel, selected: Selected, progress: Progress) -> JudgedRows:
    where, labels, chances = [], [], []
    progress.start("score", None, "row")
    try:
        for number, one in enumerate(selected):
            for rows in one.read(model):
                found = model.score_tokens(rows.tokens, rows.lengths)
                where.append(np.stack([np.full(len(rows.places), number), rows.places], axis=1))
                labels.append(rows.labels.astype(np.int64))
                chances.append(found[:, 1] if len(model.classes) == 2 else found)
                progress.advance(len(rows.labels))
    finally:
        progress.finish()
    return JudgedRows(np.concatenate(where), np.concatenate(labels), np.concatenate(chances))


def common_rows(one: JudgedRows, other: JudgedRows) -> tuple[JudgedRows, JudgedRows]:
    """Return the rows that both runs judged, in the same order. A tokeniser may leave out rows that another keeps."""
    if np.array_equal(one.where, other.where):
        return _check_labels(one, other)
    places = [{tuple(where): row for row, where in enumerate(judged.where.tolist())} for judged in (one, other)]
    both = sorted(places[0].keys() & places[1].keys())
    if not both:
        raise UsageError("the runs have no rows in common", remedy="give --data a file that both runs can read")
    rows = [np.array([place[where] for where in both]) for place in places]
    return _check_labels(one.take(rows[0]), other.take(rows[1]))


def _check_labels(one: JudgedRows, other: JudgedRows) -> tuple[JudgedRows, JudgedRows]:
    if not np.array_equal(one.labels, other.labels):
        remedy = "give --data whose labels mean the same to both runs"
        raise UsageError("the runs read different labels for the same rows", remedy=remedy)
    return one, other


def words_of(run: Path, selected: Selected, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Return the first words of some rows, as the vocabulary of a run knows them; an unknown word becomes …"""
    model, found, missing = model_of(ModelRef.of(run)), {}, set(wanted)
    words = (*[""] * UNKNOWN, "…", *model.encoder.vocabulary.words)
    for number, one in enumerate(selected):
        if not any(file == number for file, _ in missing):
            continue
        for rows in one.read(model):
            ends = np.cumsum(rows.lengths)
            for row, place in enumerate(rows.places.tolist()):
                if (number, place) in missing:
                    missing.discard((number, place))
                    tokens = rows.tokens[ends[row] - rows.lengths[row] : ends[row]]
                    more = " …" if len(tokens) > _SHOWN_WORDS else ""
                    found[number, place] = " ".join(words[token] for token in tokens[:_SHOWN_WORDS].tolist()) + more
            if not missing:
                break
    return found
