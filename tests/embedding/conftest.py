"""What the tests of word vectors share."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.topics import write_topics


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences in which the words of a topic stand in the same places."""
    return write_topics(tmp_path_factory.mktemp("text") / "text.txt")
