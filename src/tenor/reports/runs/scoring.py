"""Scores rows of prepared data or of a labelled raw file with the model of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tenor.corpus.pieces import whole
from tenor.engines.local import LocalEngine
from tenor.evaluation.sections import LabelledPiece, SplitSection
from tenor.prediction.evaluate import select_rows
from tenor.prediction.settings import EvaluateSettings
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.preparation.tokeniser.negation import plain
from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.progress import Progress
from tenor.reports.runs.judged import JudgedRows
from tenor.runtime.model import SentimentModel

_SHOWN_WORDS = 60

Selected = Sequence[LabelledPiece | SplitSection]


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
    return JudgedRows(np.concatenate(where), np.concatenate(labels), np.concatenate(chances), model.threshold)


def words_of(run: Path, selected: Selected, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Return the first words of some rows, as the vocabulary of a run knows them; an unknown word becomes …"""
    model, found, missing = model_of(ModelRef.of(run)), {}, set(wanted)
    words = (*[""] * UNKNOWN, "…", *map(plain, model.encoder.vocabulary.words))
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


def place_of(selected: Selected, where: tuple[int, int]) -> str:
    """Return where a row is, for people: its number in a split, or its file and line."""
    one = selected[where[0]]
    return f"{one.piece.source.shown}, line {where[1]}" if isinstance(one, LabelledPiece) else f"row {where[1]}"
