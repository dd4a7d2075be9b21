"""How to evaluate: the reading options are those of prepare."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.settings import setting


@dataclass(frozen=True)
class EvaluateSettings:
    split: str = setting("test", "The split of prepared data.", ("train", "valid", "test"))
    text_column: str | None = setting(None, "Raw file: column of the text; known schemas are recognised.")
    label_column: str | None = setting(None, "Raw file: column of the label.")
    title_column: str | None = setting(None, "Raw file: column joined to the text.")
    negative: str = setting("1,2", "Raw file: labels that mean negative.")
    positive: str = setting("4,5", "Raw file: labels that mean positive.")
    max_rejects: float = setting(0.01, "Raw file: the largest share of rows that may be unreadable.")
