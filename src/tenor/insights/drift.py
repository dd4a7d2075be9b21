"""`tenor.measure_drift`: are these reviews like those that a run was trained on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tenor.corpus.frames import refuse_frame
from tenor.corpus.labels import NEUTRAL, NO_RATING
from tenor.corpus.pieces import read_piece, whole
from tenor.errors import CorpusError, RunError, StoreError
from tenor.evaluation.decision import decide
from tenor.evaluation.labelled import EncodedReading
from tenor.evaluation.survey import PieceSurvey, check_survey
from tenor.insights.domain import distinct, domain_auc, exceeds_chance, joined, shortened
from tenor.insights.phrases.choosing import FEWEST_ROWS as FEWEST_PHRASE_ROWS
from tenor.insights.phrases.choosing import choose_buckets, rising, sure_growth
from tenor.insights.phrases.counting import BucketCounts, ExactCounts, PhraseRows
from tenor.insights.phrases.words import kinds_of
from tenor.insights.reading import open_inputs
from tenor.insights.scoring import RunScorer
from tenor.insights.settings import DriftSettings
from tenor.insights.shares import wilson
from tenor.prediction.worker_model import ModelRef
from tenor.preparation.job.accounting import account, check_rows
from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.progress import Progress, Shown, shown
from tenor.settings import chosen
from tenor.store.manifest import SPLITS, Manifest
from tenor.store.reader import open_split
from tenor.store.reference import LENGTH, Reference, read_reference, sample

if TYPE_CHECKING:
    from tenor.options import DriftOptions

SAME, DIFFERENT = "same", "different"
FEWEST_ROWS = 30  # different reviews; fewer say nothing
PHRASES = 20
HOLD = 4  # times as many rows as wanted are held before the sample is cut again

Files = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Drift:
    """What `tenor drift` reports.

    Attributes:
        values: The values that the command prints as JSON.
    """

    values: dict[str, Any]

    @property
    def verdict(self) -> str:
        """`same` or `different`."""
        return str(self.values["verdict"])

    def as_dict(self) -> dict[str, Any]:
        """Return the values.

        >>> tenor.measure_drift("run", "new.jsonl").as_dict()["auc"]  # doctest: +SKIP
        0.514
        """
        return self.values


def measure_drift(
    run: str | Path,
    files: Files,
    settings: DriftSettings | None = None,
    progress: Shown = None,
    **options: Unpack[DriftOptions],
) -> Drift:
    """Compare new reviews with those of a run's data.

    A classifier of n-grams tries to tell the two apart, cross-validated. The verdict is `different` if its AUC is at
    least `effect` and the 99 % interval of the AUC lies above 0.5. With fewer than 1,000 reviews of a side, it must
    also be above the AUC of 19 random divisions of the same reviews.

    Args:
        run: A folder made by `tenor train`.
        files: Files, folders or globs of new reviews, in any format that `prepare` reads. Ratings are optional; with
            them, neutral rows are left out as in the run's data.
        settings: How to read the files, what to compare with, and what counts as different.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The verdict, the AUC with its interval, unknown words, lengths, predicted shares and the phrases that changed.

    Raises:
        RunError: The run folder cannot be used, or stores no sample of its data and no reference is named.
        CorpusError: A file cannot be read, or has too few different reviews.
        UsageError: The settings do not fit.

    >>> tenor.measure_drift("run", "new.jsonl").verdict  # doctest: +SKIP
    'same'
    """
    settings, progress = chosen(DriftSettings, settings, options), shown(progress)
    refuse_frame(files, "save it as a file first, such as Parquet")
    given = [str(files)] if isinstance(files, str | Path) else [str(file) for file in files]
    scorer = RunScorer(ModelRef.of(run))
    reference = distinct(_reference(Path(run), scorer, settings, progress), settings.rows, settings.seed)
    new, accounting = _read(given, scorer, settings, progress)
    for rows, where in ((len(reference.lengths), settings.reference or str(run)), (len(new.lengths), given[0])):
        if rows < FEWEST_ROWS:
            what = f"has {rows} different reviews, too few to compare"
            raise CorpusError(what, where=where, remedy=f"give at least {FEWEST_ROWS}")
    progress.say("comparing")
    auc, low, high = domain_auc(reference, new, settings.seed)
    is_different = auc >= settings.effect and low > 0.5 and exceeds_chance(reference, new, auc, settings.seed)
    return Drift(
        {
            "verdict": DIFFERENT if is_different else SAME,
            "auc": auc,
            "auc_interval": [low, high],
            "effect": settings.effect,
            "rows": len(new.lengths),
            "rows_reference": len(reference.lengths),
            **accounting,
            "unknown_words": _unknown(new),
            "unknown_words_reference": _unknown(reference),
            "lengths": _quartiles(new),
            "lengths_reference": _quartiles(reference),
            "predicted": _predicted(new, scorer),
            "predicted_reference": _predicted(reference, scorer),
            "phrases": changed_phrases(reference, new, scorer.words()),
        }
    )


def _reference(run: Path, scorer: RunScorer, settings: DriftSettings, progress: Progress) -> Reference:
    """The sample to compare with."""
    if settings.reference is None:
        found = None if run.is_file() else read_reference(run, len(scorer.words()) + UNKNOWN + 1)  # a compact model
        if found is None:
            remedy = "name the data it was trained on with --reference, or train it again"
            raise RunError("has no sample of its data (reference.safetensors)", where=run, remedy=remedy)
        return found
    data = Path(settings.reference)
    if not data.is_dir():
        return _read([settings.reference], scorer, settings, progress)[0]
    manifest = Manifest.load(data)
    if manifest.vocab_sha256 != scorer.config["vocab_sha256"]:
        remedy = "name the data that the run was trained on, or a raw file"
        raise StoreError("was prepared with another vocabulary than the run's", where=data, remedy=remedy)
    splits = {name: open_split(data, name) for name in SPLITS}
    try:
        return sample(splits, HOLD * settings.rows)
    finally:
        for split in splits.values():
            split.close()


def _read(
    files: list[str], scorer: RunScorer, settings: DriftSettings, progress: Progress
) -> tuple[Reference, dict[str, Any]]:
    """(a sample of different reviews of raw files, the accounting of all rows).

    Rows with a neutral rating are left out, as in prepared data. The sample is cut again and again, so memory does not
    grow with the files.
    """
    inputs = open_inputs(files, scorer, settings, progress)
    pieces, surveys, held = [whole(source) for source in inputs.sources], [], Reference(_EMPTY, _EMPTY, _EMPTY, True)
    kept = neutral = 0
    progress.start("read", sum(piece.size for piece in pieces), "B")
    for piece in pieces:
        reading = EncodedReading(piece, inputs.rule, scorer.encoder)
        for batch in read_piece(piece):
            reading.add(batch)
            rows = reading.rows.take()
            names = reading.ratings.names
            drops = np.array([n != NO_RATING and inputs.rule.label(n) == NEUTRAL for n in names] or [False])[rows.codes]
            neutral, kept = neutral + int(drops.sum()), kept + int((~drops).sum())
            fresh = shortened(rows.tokens, rows.lengths, LENGTH)
            held = joined([held, fresh.take(np.flatnonzero(~drops)) if drops.any() else fresh])
            if len(held.lengths) > HOLD * settings.rows:
                held = distinct(held, settings.rows, settings.seed)
        surveys.append(PieceSurvey(reading.counts(), {}, (), reading.rejects.first_line()))
        progress.advance(piece.size)
    progress.finish()
    counts = [survey.counts for survey in surveys]
    check_rows(counts, pieces)
    check_survey(pieces, surveys, settings.max_rejects)
    rows_of = account(counts, duplicates=0, neutral=neutral, kept=kept)
    accounting = {"rows_read": rows_of.read, "dropped": rows_of.dropped, "rejected": rows_of.rejected}
    return distinct(held, settings.rows, settings.seed), accounting


_EMPTY = np.empty(0, np.int32)


def _unknown(rows: Reference) -> float:
    """The share of unknown words."""
    return float((rows.tokens == UNKNOWN).mean()) if len(rows.tokens) else 0.0


def _quartiles(rows: Reference) -> dict[str, float]:
    names = ("lower_quartile", "median", "upper_quartile")
    return dict(zip(names, np.percentile(rows.whole_lengths, [25, 50, 75]).tolist(), strict=True))


def _predicted(rows: Reference, scorer: RunScorer) -> dict[str, dict[str, float]]:
    """The share of reviews that the model puts into each class, with its interval."""
    found = decide(scorer.probabilities(rows.tokens, rows.lengths), scorer.model.threshold)
    shares = {}
    for number, name in enumerate(scorer.classes):
        count = int((found == number).sum())
        low, high = wilson(count, len(found))
        shares[name] = {"share": count / len(found), "low": low, "high": high}
    return shares


def changed_phrases(one: Reference, other: Reference, words: Sequence[str]) -> list[dict[str, Any]]:
    """The phrases whose share of reviews differs most significantly, most significant first."""
    kinds, sizes = kinds_of(words), (len(one.lengths), len(other.lengths))
    both = joined([one, other])
    ends = np.cumsum(both.lengths, dtype=np.int64)
    sides = np.repeat(np.array([0, 1], np.int8), sizes)
    found: list[dict[str, Any]] = []
    for recent, is_more in ((sides, True), ((1 - sides).astype(np.int8), False)):
        rows = PhraseRows(both.tokens, ends, np.full(len(ends), 0.5, np.float32), recent)
        buckets = BucketCounts()
        buckets.add(rows, kinds)
        exact = ExactCounts(choose_buckets(buckets, 0.5))
        exact.add(rows, kinds, np.zeros((len(both.tokens), 0), np.float32))
        before, now = sizes if is_more else sizes[::-1]
        limit = sure_growth(buckets.num_tested(FEWEST_PHRASE_ROWS))
        for phrase in rising(exact, words, (before, now), limit, PHRASES):
            shares = exact.figures[phrase.number, 3:] / (before, now)
            reference, new = shares if is_more else shares[::-1]
            z = phrase.strength if is_more else -phrase.strength
            found.append({"phrase": phrase.text, "reference": float(reference), "new": float(new), "z": z})
    return sorted(found, key=lambda values: -abs(values["z"]))[:PHRASES]
