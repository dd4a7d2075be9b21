"""Labelled rows of raw files: which rows are read, and by which label rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.corpora import Review, make_reviews, write_fasttext, write_json_lines

from tenor.corpus.columns import Wanted
from tenor.corpus.labels import make_rule
from tenor.corpus.pieces import whole
from tenor.corpus.sources import find_sources
from tenor.errors import UsageError
from tenor.evaluation.labelled import choose_rule, read_labelled
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.tokenise import TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, Vocabulary


def test_read_labelled_gives_words_and_label(tmp_path: Path) -> None:
    reviews = [*make_reviews(50), Review("so so", 3), Review("...", 5)]
    [source] = find_sources([write_json_lines(tmp_path / "r.jsonl", reviews)], Wanted())
    words = sorted({word for review in reviews for word in review.text.split()})
    encoder = Encoder(Vocabulary(words), TokeniserSettings("words", True, ()).as_dict(), 400)
    rule = make_rule("binary", "1,2", "4,5")
    found = [
        (" ".join(words[token - FIRST_WORD] for token in row), int(label))
        for rows in read_labelled(whole(source), rule, encoder)
        for row, label in zip(np.split(rows.tokens, np.cumsum(rows.lengths)[:-1]), rows.labels, strict=True)
    ]
    assert found == [(review.text, int(review.rating > 3)) for review in reviews[:-2]]


def test_fasttext_labels_beside_stars_are_refused(tmp_path: Path) -> None:
    reviews = make_reviews(60)
    files = [write_fasttext(tmp_path / "a.ft", reviews[:30]), write_json_lines(tmp_path / "b.jsonl", reviews[30:])]
    with pytest.raises(UsageError, match="2 would be positive in one file and negative in the other"):
        choose_rule(find_sources(files, Wanted()), PrepareSettings(), None)
