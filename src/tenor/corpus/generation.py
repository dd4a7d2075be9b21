"""The settings of generate: its options, TOML keys and Python arguments."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.errors import UsageError
from tenor.settings import setting


@dataclass(frozen=True)
class GenerateSettings:
    rows: int = setting(10_000, "Reviews to write.")
    seed: int = setting(0, "The same seed and settings give the same bytes.")
    duplicates: float = setting(0.0, "Share of rows that repeat another row.")
    noise: float = setting(0.05, "Share of ratings that contradict their text; 1 − noise is the Bayes accuracy.")
    negative_share: float = setting(0.5, "Share of negative texts.")
    length: float = setting(60.0, "Words of product talk around an opinion, on average.")
    contrast: float = setting(0.3, "Share of texts with a clause of the opposite sense before the decisive one.")

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise UsageError("--rows is below 1", remedy="give the number of reviews to write")
        if self.seed < 0 or self.length < 0:
            raise UsageError("--seed or --length is below 0", remedy="give 0 or more")
        if not 0 <= self.noise < 0.5:
            raise UsageError("--noise is not from 0 to below 0.5", remedy="at 0.5 ratings would mean nothing")
        for name in ("duplicates", "negative_share", "contrast"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"--{name.replace('_', '-')} is no share", remedy="give a number from 0 to 1")
