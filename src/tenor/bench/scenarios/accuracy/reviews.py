"""The same rows for every method: prepared data for Tenor, and the texts of its splits as files for the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tenor.bench.peers.classifiers.reviews import write_reviews
from tenor.bench.settings import BenchSettings
from tenor.corpus.labels import BINARY, NEUTRAL, LabelRule, canonical, sort_key
from tenor.corpus.pieces import read_piece, whole
from tenor.corpus.sources import find_sources
from tenor.errors import StoreError, UsageError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages.dedupe import assign_splits, choose
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.negation import plain
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import vocabulary_of
from tenor.store.manifest import SPLITS, Manifest
from tenor.store.reader import open_split

SMALL = 16 << 20  # bytes of a file that one worker reads before others have started
UNKNOWN_WORD = "unknownword"  # in the texts of prepared data


@dataclass(frozen=True)
class SharedRows:
    """The rows of one seed."""

    data: Path  # prepared data
    texts: Path  # a folder with train.jsonl, valid.jsonl and test.jsonl
    rows: dict[str, int]  # of each split
    prepare_seconds: float


def share_rows(settings: BenchSettings, seed: int, folder: Path) -> SharedRows:
    """Prepare the rows of one seed.

    The seed decides which rows of a raw file are test rows and validation rows. Prepared data keeps its own splits.

    Raises:
        UsageError: The data has other classes than negative and positive, or a split has no rows.
    """
    given, seconds = Path(settings.data), 0.0
    data = given
    if not given.is_dir():
        data = folder / "data"
        seconds = prepare([given], data, _preparing(settings, seed)).seconds
    manifest = Manifest.load(data)
    if manifest.classes != BINARY:
        what = f"has the classes {', '.join(manifest.classes):.80}, and the scenario compares two"
        raise UsageError(what, where=given, remedy="give data prepared with --labels binary")
    rows = {name: manifest.splits[name].rows for name in SPLITS}
    if empty := [name for name, count in rows.items() if not count]:
        raise UsageError(f"the split {empty[0]} has no rows", where=given, remedy="give more rows")
    texts = folder / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    if given.is_dir():
        _write_words(data, texts)
    else:
        _write_texts(settings, seed, manifest, texts)
    return SharedRows(data, texts, rows, seconds)


def _preparing(settings: BenchSettings, seed: int) -> PrepareSettings:
    reading = {
        name: value
        for name in ("text_column", "label_column", "negative", "positive")
        if (value := getattr(settings, name))
    }
    workers = 1 if Path(settings.data).stat().st_size < SMALL else "auto"
    return PrepareSettings(workers=workers, split_seed=seed, valid_share=0.1, test_share=0.2, **reading)


@dataclass
class _Found:
    """The rows of raw files that have words and a rating."""

    texts: list[str] = field(default_factory=list)
    ratings: list[str] = field(default_factory=list)
    hashes: list[npt.NDArray[np.uint64]] = field(default_factory=list)


def _write_texts(settings: BenchSettings, seed: int, manifest: Manifest, folder: Path) -> None:
    """Write the texts of a raw file, in the splits that prepare puts them into."""
    preparing = _preparing(settings, seed)
    rule = LabelRule.from_dict(manifest.labels)
    found = _read(settings.data, preparing, rule)
    order_of = {rating: index for index, rating in enumerate(sorted(set(found.ratings), key=sort_key))}
    ratings = np.array([order_of[rating] for rating in found.ratings], np.int64)
    hashes = np.concatenate(found.hashes)
    order, chosen = choose(hashes, ratings, preparing.dedupe)
    labels = np.array([rule.label(rating) for rating in order_of])[chosen]
    order, labels = order[labels != NEUTRAL], labels[labels != NEUTRAL]
    splits = assign_splits(hashes[order, 1], preparing.valid_share, preparing.test_share, seed)
    for index, name in enumerate(SPLITS):
        mine = splits == index
        if tuple(np.bincount(labels[mine], minlength=len(BINARY))) != manifest.splits[name].class_counts:
            raise StoreError("changed while it was read", where=settings.data, remedy="run the scenario again")
        write_reviews(folder / f"{name}.jsonl", (found.texts[row] for row in order[mine]), labels[mine].tolist())


def _read(file: str, preparing: PrepareSettings, rule: LabelRule) -> _Found:
    found = _Found()
    tokeniser = Tokeniser.counting(TokeniserSettings(preparing.clean, preparing.marks))
    for source in find_sources([file], preparing.wanted):
        for batch in read_piece(whole(source)):
            texts, ratings = batch.rows.column(0), [canonical(raw) for raw in batch.rows.column(1).to_pylist()]
            if not ratings:
                continue
            tokens = tokeniser(texts, 1)
            good = np.array([rule.accepts(rating) for rating in ratings]) & (tokens.lengths > 0)
            found.hashes.append(tokens.hashes[good])
            found.texts += [text for text, is_good in zip(texts.to_pylist(), good, strict=True) if is_good]
            found.ratings += [rating for rating, is_good in zip(ratings, good, strict=True) if is_good]
    return found


def _write_words(data: Path, folder: Path) -> None:
    """Write the words of prepared data; words that are not in the vocabulary become UNKNOWN_WORD."""
    names = np.array(["", UNKNOWN_WORD, *map(plain, vocabulary_of(data).words)], object)
    for name in SPLITS:
        with open_split(data, name) as split:
            tokens, lengths = split.gather(np.arange(len(split)))
            ends = np.cumsum(lengths)
            texts = (" ".join(names[tokens[end - length : end]]) for end, length in zip(ends, lengths, strict=True))
            write_reviews(folder / f"{name}.jsonl", texts, split.labels.tolist())
