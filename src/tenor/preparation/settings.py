"""The settings of prepare: its options, TOML keys and Python arguments."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.errors import UsageError
from tenor.settings import setting


@dataclass(frozen=True)
class PrepareSettings:
    engine: str = setting("local", "Where the job runs.", choices=("local",))
    workers: int = setting(0, "Worker processes; 0 takes one a core.")
    text_column: str | None = setting(None, "Field or column that holds the text; recognised if not given.")
    label_column: str | None = setting(None, "Field or column that holds the rating; recognised if not given.")
    title_column: str | None = setting(None, "Field or column put before the text.")
    labels: str = setting("binary", "Two classes, or one a star.", choices=("binary", "stars"))
    negative: str = setting("1,2", "Ratings that count as negative, parted by commas.")
    positive: str = setting("4,5", "Ratings that count as positive; ratings in neither list are dropped as neutral.")
    marks: bool = setting(True, "Keep ! and ? as tokens.")
    vocab_size: int = setting(30_000, "Most frequent words kept, padding and unknown included.")
    max_length: int = setting(400, "Tokens kept of each review.")
    dedupe: bool = setting(True, "Keep one review of each text.")
    valid_share: float = setting(0.1, "Share of the texts that validation gets.")
    test_share: float = setting(0.1, "Share of the texts that the test gets.")
    split_seed: int = setting(0, "Another number gives other splits.")
    max_rejects: float = setting(0.01, "Share of rejected rows above which the job fails.")

    def __post_init__(self) -> None:
        if self.vocab_size < 3:
            raise UsageError("--vocab-size is below 3", remedy="padding and unknown take two of it")
        if self.max_length < 1:
            raise UsageError("--max-length is below 1", remedy="give the number of tokens to keep of a review")
        if self.workers < 0:
            raise UsageError("--workers is below 0", remedy="give a number, or 0 for one a core")
        for name in ("valid_share", "test_share", "max_rejects"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"--{name.replace('_', '-')} is no share", remedy="give a number from 0 to 1")
        if self.valid_share + self.test_share >= 1:
            raise UsageError("--valid-share and --test-share leave nothing to train on", remedy="make them smaller")
