"""Raw files read with their labels, for evaluation: the rows that prepare would keep, duplicates included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.columns import Wanted
from tenor.corpus.labels import STARS, LabelRule, canonical, make_rule
from tenor.corpus.pieces import read_piece, whole
from tenor.corpus.sources import Source, find_sources
from tenor.errors import CorpusError, UsageError
from tenor.preparation.mapping import Ratings
from tenor.preparation.rules import FASTTEXT, settle_rule
from tenor.preparation.settings import PrepareSettings


def read_labelled(
    inputs: Sequence[str | Path], settings: PrepareSettings, classes: Sequence[str], known: LabelRule | None = None
) -> Iterator[tuple[pa.Array, npt.NDArray[np.uint8]]]:
    """Batches of (texts, labels). `known` is the rule to go by where the settings name none.

    Neutral and unreadable rows are left out; too many unreadable ones raise CorpusError.
    """
    sources = find_sources(inputs, Wanted(settings.text_column, settings.label_column, settings.title_column))
    rule = _rule(sources, settings, known)
    if rule.classes != tuple(classes):
        raise CorpusError(
            f"the labels make the classes {', '.join(rule.classes)}, not {', '.join(classes)}",
            remedy="give the label options the model was prepared with",
        )
    read = refused = 0
    for source in sources:
        ratings = Ratings(rule, source.path)
        for batch in read_piece(whole(source)):
            codes, good = ratings.codes(batch.rows.column(1))
            read += len(codes) + len(batch.rejects)
            refused += len(batch.rejects) + int((~good).sum())
            table = np.array([rule.label(name) for name in ratings.names] or [-1])
            labels = np.where(good, table[np.where(good, codes, 0)], -1) if len(codes) else np.empty(0, np.int64)
            chosen = labels >= 0
            yield batch.rows.column(0).filter(pa.array(chosen)), labels[chosen].astype(np.uint8)
    if refused > settings.max_rejects * read:
        raise CorpusError(
            f"{refused:,} of {read:,} rows cannot be used",
            where=sources[0].path,
            remedy="mend the input or raise --max-rejects",
        )


def _rule(sources: Sequence[Source], settings: PrepareSettings, known: LabelRule | None) -> LabelRule:
    rule = known or make_rule(settings.labels, settings.negative, settings.positive)
    if all(source.kind.format != "fasttext" for source in sources):
        if known == make_rule("binary", *FASTTEXT):
            raise UsageError(
                "the model was trained on labels 1 and 2, which may mean something else here",
                where=sources[0].path,
                remedy="say what ratings mean with --negative and --positive",
            )
        return rule
    if rule.classes == STARS or (known and {known.label(name) for name in FASTTEXT} == {0, 1}):
        return rule
    seen = (
        (
            source.kind.format,
            [name for raw in batch.rows.column(1).unique().to_pylist() if rule.accepts(name := canonical(raw))],
        )
        for source in sources
        for batch in read_piece(whole(source))
    )
    return settle_rule(rule, settings, seen)
