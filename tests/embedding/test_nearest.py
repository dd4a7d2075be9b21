"""Neighbours, analogies and scores on vectors that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tenor
from tenor.embedding.questions import score_file, spearman
from tenor.embedding.vectors import Vectors
from tenor.errors import UsageError

WORDS = ("king", "queen", "man", "woman", "prince", "apple")
VECTORS = Vectors(WORDS, np.array([[5, 1, 0], [5, -1, 0], [1, 1, 0], [1, -1, 0], [4, 1, 0.5], [0, 0, 9]], np.float32))


def test_neighbours_are_those_with_the_largest_cosine() -> None:
    found = tenor.neighbours(VECTORS, ["king", "APPLE"], count=3)
    rows = VECTORS.matrix / np.linalg.norm(VECTORS.matrix, axis=1, keepdims=True)
    cosines = sorted(((float(rows[0] @ rows[n]), WORDS[n]) for n in range(1, 6)), reverse=True)
    assert [word for word, _ in found["king"]] == [word for _, word in cosines[:3]]
    assert [cosine for _, cosine in found["king"]] == pytest.approx([cosine for cosine, _ in cosines[:3]], abs=1e-6)
    assert found["APPLE"][0][0] == "prince"


def test_sums_leave_out_their_own_words() -> None:
    assert tenor.neighbours(VECTORS, ["king - man + woman"], count=1)["king - man + woman"][0][0] == "queen"
    assert len(tenor.neighbours(VECTORS, ["king"], count=100)["king"]) == 5


@pytest.mark.parametrize(("queries", "count"), [(["unheard"], 1), (["king + "], 1), (["king"], 0)])
def test_unknown_words_and_counts_are_refused(queries: list[str], count: int) -> None:
    with pytest.raises(UsageError):
        tenor.neighbours(VECTORS, queries, count)


def test_ranks_correlate_as_defined() -> None:
    """Without ties 1 - 6 Σd² / n(n² - 1); with ties the correlation of mean ranks, worked out by hand."""
    assert spearman(np.array([1, 2, 3, 4.0]), np.array([1, 3, 2, 4.0])) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert spearman(np.array([1, 1, 2.0]), np.array([1, 2, 3.0])) == pytest.approx(np.sqrt(3) / 2)
    assert spearman(np.array([1, 1.0]), np.array([1, 2.0])) == 0.0


def test_files_of_questions_are_scored(tmp_path: Path) -> None:
    (tmp_path / "similar.tsv").write_text(
        "# word pairs\nKing\tprince\t9\nking\tqueen\t8\nking\tapple\t1\nking\tnone\t5\n"
    )
    scored = score_file(VECTORS, tmp_path / "similar.tsv")
    assert scored == {"kind": "similarities", "questions": 3, "left_out": 1, "spearman": 1.0}
    (tmp_path / "analogies.txt").write_text(
        ": family\nman king woman queen\nman king woman apple\nman king woman none\n"
    )
    scored = score_file(VECTORS, tmp_path / "analogies.txt")
    assert scored == {"kind": "analogies", "questions": 2, "left_out": 1, "accuracy": 0.5}


@pytest.mark.parametrize("head", ["Word 1,Word 2,Human (mean)", "word1,word2,score", "\ufeffword1,word2,human mean"])
def test_a_first_line_of_column_names_is_left_out(tmp_path: Path, head: str) -> None:
    (tmp_path / "combined.csv").write_text(f"{head}\r\nking,prince,9\r\nking,queen,8\r\nking,apple,1\r\n", "utf-8")
    scored = score_file(VECTORS, tmp_path / "combined.csv")
    assert scored == {"kind": "similarities", "questions": 3, "left_out": 0, "spearman": 1.0}
    (tmp_path / "analogies.csv").write_text("a,b,c\nman,king,woman,queen\n")
    assert score_file(VECTORS, tmp_path / "analogies.csv")["questions"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("one two\n", "has neither two words and a number nor four words"),
        ("a b x\n", "has neither"),
        ("", "has neither"),
        ("Word 1,Word 2,Human (mean)\n", "has neither"),
        ("a b 1\na b c d\n", "line 2 is not two words and a number, as line 1 is"),
        ("word 1 word 2 score\n# pairs\na b 1\na b x\n", "line 4 is not two words and a number, as line 3 is"),
        ("a b c d\na b c\n", "line 2 is not four words, as line 1 is"),
        ("a b 1\na b nan\n", "line 2 is not two words and a number"),
        ("one\ntwo\na b 1\n", "line 2 is neither"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(UsageError, match=message):
        score_file(VECTORS, tmp_path / "file")
