"""The settings of `tenor generate` and `tenor.generate`."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.settings import Settings, setting, wrong_value


@dataclass(frozen=True)
class GenerateSettings(Settings):
    """What a synthetic review corpus looks like. Each field is an option of `tenor generate`.

    >>> GenerateSettings(rows=1000, noise=0.1).rows
    1000
    """

    rows: int = setting(10_000, "Number of reviews to write.")
    seed: int = setting(0, "Random seed. The same seed and settings write the same bytes.")
    duplicates: float = setting(0.0, "Share of the rows that repeat another row.")
    noise: float = setting(
        0.05, "Share of the ratings that contradict their text. The Bayes accuracy of the corpus is 1 − noise."
    )
    negative_share: float = setting(0.5, "Share of the texts with a negative opinion.")
    length: float = setting(60.0, "Average number of words about the product around each opinion.")
    contrast: float = setting(
        0.3, "Share of the texts with a clause of the opposite sentiment before the decisive clause."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows < 1:
            raise wrong_value("rows", self.rows, "give a whole number of at least 1")
        if not 0 <= self.seed < 1 << 63:
            raise wrong_value("seed", self.seed, "give a whole number from 0 to 2**63 - 1")
        if not 0 <= self.length < 1e6:
            raise wrong_value("length", self.length, "give a number from 0 to 1,000,000")
        if not 0 <= self.noise < 0.5:
            raise wrong_value("noise", self.noise, "give a number from 0 to below 0.5, where ratings become random")
        for name in ("duplicates", "negative_share", "contrast"):
            if not 0 <= getattr(self, name) <= 1:
                raise wrong_value(name, getattr(self, name), "give a number from 0 to 1")
