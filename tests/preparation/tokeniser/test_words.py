"""The growing table of words."""

from __future__ import annotations

import pytest

from tenor.preparation.tokeniser.words import WordTable, pack, unpack


@pytest.mark.parametrize(("count", "size"), [(33_000, 64), (100_000, 12), (10, 3_000_000), (200_000, 3)])
def test_many_or_long_words_at_once_have_room(count: int, size: int) -> None:
    words = [f"{number:x}".rjust(size, "x").encode() for number in range(count)]
    table = WordTable()
    assert table.add(*pack(words)).tolist() == list(range(count))
    assert table.used[1] <= len(table.arena) and len(table) < len(table.starts)
    assert unpack(*table.contents()) == words
    assert table.find(*pack([words[-1], b"absent"])).tolist() == [count - 1, -1]
