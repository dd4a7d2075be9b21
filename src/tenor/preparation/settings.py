"""The settings of `tenor prepare` and `tenor.prepare`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from tenor.corpus.columns import Wanted
from tenor.corpus.settings import GROUP as RAW_INPUT
from tenor.corpus.settings import LabelledReadingSettings
from tenor.engines.settings import EngineSettings
from tenor.errors import UsageError
from tenor.settings import field_names, setting, wrong_value

_LABELS, _TOKENS, _ROWS = "Labels", "Tokens and vocabulary", "Duplicates and splits"


@dataclass(frozen=True)
class PrepareSettings(EngineSettings, LabelledReadingSettings):
    """How raw reviews become prepared data. Each field is an option of `tenor prepare` and a key of its TOML file.

    >>> PrepareSettings(workers=2, vocab_size=20_000, negative="0", positive="1").vocab_size
    20000
    """

    labels: str = setting(
        "binary", "Classes: negative and positive, or one class per star rating.", ("binary", "stars"), group=_LABELS
    )
    negative: str = setting(
        "1,2", "Ratings that mean negative, separated by commas, or false for Boolean labels.", group=_LABELS
    )
    positive: str = setting(
        "4,5",
        "Ratings that mean positive, separated by commas, or true for Boolean labels. Ratings in neither list are "
        "neutral; their rows are dropped.",
        group=_LABELS,
    )
    unlabelled: bool = setting(
        False,
        "Keep reviews without a rating in a split of their own, from which tenor embed learns word vectors.",
        group=_LABELS,
    )
    clean: str = setting(
        "words",
        "Characters to keep: letters and digits (words), or only letters, which also drops ! and ?.",
        ("words", "letters"),
        group=_TOKENS,
    )
    tokens: str = setting(
        "auto",
        "What the tokens are: words, or characters. auto takes characters for Korean, Chinese, Japanese, Thai and "
        "similar scripts.",
        ("auto", "words", "characters"),
        group=_TOKENS,
    )
    stopwords: str | None = setting(
        None,
        "Remove stop words: english for the built-in list, which includes 'not', or the path of a text file.",
        group=_TOKENS,
    )
    marks: bool = setting(True, "Keep ! and ? as tokens.", group=_TOKENS)
    negation: bool = setting(
        True,
        "Read the next words after an English negator as words of their own: not bad becomes not ¬bad.",
        group=_TOKENS,
    )
    vocab_size: int = setting(
        30_000,
        "Size of the vocabulary: the most frequent words, plus two entries for padding and unknown.",
        group=_TOKENS,
    )
    vocab: str | None = setting(
        None,
        "Use the vocabulary of this prepared folder, run folder or vocab.json instead of a new one.",
        group=_TOKENS,
    )
    max_length: int = setting(2_500, "Maximum number of tokens per review; longer reviews are cut.", group=_TOKENS)
    dedupe: bool = setting(True, "Keep only one of several reviews with the same text.", group=_ROWS)
    valid_share: float = setting(0.1, "Share of the texts in the validation split.", group=_ROWS)
    test_share: float = setting(0.1, "Share of the texts in the test split.", group=_ROWS)
    split_seed: int = setting(0, "Seed that decides which texts are in which split.", group=_ROWS)
    max_rejects: float = setting(
        0.01, "Maximum share of rows that may be rejected as unreadable before the job fails.", group=RAW_INPUT
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocab_size < 3:
            remedy = "give at least 3: padding and unknown words take two entries"
            raise wrong_value("vocab_size", self.vocab_size, remedy)
        if self.max_length < 1:
            raise wrong_value("max_length", self.max_length, "give a whole number of at least 1")
        if not 0 <= self.split_seed < 1 << 64:
            raise wrong_value("split_seed", self.split_seed, "give a whole number from 0 to 2**64 - 1")
        for name in ("valid_share", "test_share", "max_rejects"):
            if not 0 <= getattr(self, name) <= 1:
                raise wrong_value(name, getattr(self, name), "give a number from 0 to 1")
        if self.valid_share + self.test_share >= 1:
            what = f"--valid-share {self.valid_share} and --test-share {self.test_share} leave no rows to train on"
            raise UsageError(what, remedy="give shares with a sum below 1")

    @property
    def wanted(self) -> Wanted:
        """The reading settings in the form that the readers take."""
        return replace(super().wanted, unlabelled=self.unlabelled)

    @property
    def result_fields(self) -> tuple[str, ...]:
        """The settings that change the prepared data; the others change where and how fast the job runs.

        Their order is part of a job's key, so it stays the same when fields are declared in another order.
        """
        others = field_names(EngineSettings) | {"max_rejects", "text_column", "label_column"}
        if not self.unlabelled:  # so that the keys of other jobs are those of older versions
            others |= {"unlabelled"}
        rest = (field.name for field in fields(self) if field.name not in others)
        return ("text_column", "label_column", *rest)
