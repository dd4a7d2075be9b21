"""The settings of prepare: its options, TOML keys and Python arguments."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tenor.engines.settings import ENGINES
from tenor.errors import UsageError
from tenor.settings import setting


@dataclass(frozen=True)
class PrepareSettings:
    engine: str = setting("local", "Where the job runs.", choices=ENGINES)
    workers: int = setting(0, "Worker processes; 0 takes one a core.")
    cluster: str | None = setting(None, "Address of a running cluster: tcp:// or tls:// for Dask, a master for Spark.")
    dask_report: str | None = setting(None, "HTML file for Dask's task stream, profiles and bandwidth.")
    tls_ca: str | None = setting(None, "Certificate authority file for a tls:// cluster.")
    tls_cert: str | None = setting(None, "Certificate file for a tls:// cluster.")
    tls_key: str | None = setting(None, "Key file for a tls:// cluster.")
    text_column: str | None = setting(None, "Field or column that holds the text; recognised if not given.")
    label_column: str | None = setting(None, "Field or column that holds the rating; recognised if not given.")
    title_column: str | None = setting(None, "Field or column put before the text.")
    labels: str = setting("binary", "Two classes, or one a star.", choices=("binary", "stars"))
    negative: str = setting("1,2", "Ratings that count as negative, parted by commas.")
    positive: str = setting("4,5", "Ratings that count as positive; ratings in neither list are dropped as neutral.")
    clean: str = setting("words", "What of a text is kept: words, or letters only.", choices=("words", "letters"))
    stopwords: str | None = setting(None, "Words to leave out: english, or a file of them. They include not.")
    marks: bool = setting(True, "Keep ! and ? as tokens.")
    vocab_size: int = setting(30_000, "Most frequent words kept, padding and unknown included.")
    vocab: str | None = setting(None, "Take the vocabulary of this prepared folder, run or vocab.json.")
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
        if not 0 <= self.split_seed < 1 << 64:
            raise UsageError("--split-seed is no number of 64 bits", remedy="give one from 0 to 2**64 - 1")
        for name in ("valid_share", "test_share", "max_rejects"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"--{name.replace('_', '-')} is no share", remedy="give a number from 0 to 1")
        if self.valid_share + self.test_share >= 1:
            raise UsageError("--valid-share and --test-share leave nothing to train on", remedy="make them smaller")

    @property
    def result_fields(self) -> tuple[str, ...]:
        """The settings that change what comes out; the others say where and how fast."""
        place = {"engine", "workers", "cluster", "dask_report", "tls_ca", "tls_cert", "tls_key", "max_rejects"}
        return tuple(field.name for field in fields(self) if field.name not in place)
