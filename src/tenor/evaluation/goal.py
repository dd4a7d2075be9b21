"""What the decision threshold of two classes is chosen for. Loads no NumPy, so that settings can use it."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.settings import wrong_value

_AT_PRECISION = "recall@precision="
GOALS = ("accuracy", "f1-macro", f"{_AT_PRECISION}P")


@dataclass(frozen=True)
class Goal:
    """What a threshold is chosen for; `precision` is the precision that the positive class must reach."""

    kind: str
    precision: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Such as `accuracy`, `f1-macro` or `recall@precision=0.95`."""
        if text.startswith(_AT_PRECISION):
            try:
                precision = float(text.removeprefix(_AT_PRECISION))
            except ValueError:
                precision = 0.0
            if 0.0 < precision <= 1.0:
                return cls("recall", precision)
        elif text in GOALS:
            return cls(text)
        raise wrong_value("optimise", text, f"choose one of {', '.join(GOALS)}, where P is above 0 and at most 1")
