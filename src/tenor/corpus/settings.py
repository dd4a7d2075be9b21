"""The reading settings that `prepare`, `evaluate` and `predict` share: columns, format and encoding of raw files."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.corpus.columns import AUTO, Wanted
from tenor.corpus.formats.registry import LABELLED_CHOICES
from tenor.settings import Settings, setting

GROUP = "Raw input"
_RECOGNISED = "Without it, the columns of known datasets are recognised."


@dataclass(frozen=True)
class ReadingSettings(Settings):
    """How raw review files are read."""

    text_column: str | None = setting(None, f"Column or JSON field with the text. {_RECOGNISED}", group=GROUP)
    title_column: str | None = setting(
        None, "Column or JSON field with a title, which is put before the text.", group=GROUP
    )
    format: str = setting(
        AUTO, "Format of the input. auto detects the format by file name and content.", LABELLED_CHOICES, group=GROUP
    )
    delimiter: str = setting(
        AUTO, "Column separator: one character, or the word tab. auto detects the separator in the header.", group=GROUP
    )
    encoding: str = setting("utf-8", "Text encoding of the input, such as cp1252, latin-1 or utf-16.", group=GROUP)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.wanted  # refuses a wrong delimiter or encoding before any work starts

    @property
    def wanted(self) -> Wanted:
        """The same settings in the form that the readers take."""
        return Wanted(self.text_column, None, self.title_column, self.format, self.delimiter, self.encoding)


@dataclass(frozen=True)
class LabelledReadingSettings(ReadingSettings):
    """How raw review files with a rating or label per row are read."""

    label_column: str | None = setting(
        None, f"Column or JSON field with the rating or label. {_RECOGNISED}", group=GROUP
    )

    @property
    def wanted(self) -> Wanted:
        """The same settings in the form that the readers take."""
        columns = (self.text_column, self.label_column, self.title_column)
        return Wanted(*columns, self.format, self.delimiter, self.encoding)
