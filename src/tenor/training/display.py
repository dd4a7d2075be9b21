"""What a person sees while training runs: one progress line, one table line an epoch."""

from __future__ import annotations

from typing import Any

from tenor.progress import Progress
from tenor.training.stragglers import Straggler, Stragglers

_FADE = 0.9  # of a step's weight in the rate, with each step after it
_HEAD = "epoch  train loss  valid acc  majority  macro-F1     AUC  samples/s  seconds"


class Display:
    """Turns the workers' events into progress; keeps the final one as the result."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.result: dict[str, Any] = {}
        self.samples = self.seconds = 0.0  # of the last ten steps or so, older ones faded
        self.clock: float | None = None  # when the step before ended, where nothing else came since
        self.step = 0
        self.stragglers = Stragglers()
        self.named: set[int] = set()  # stragglers a line was said about
        self.is_alike = True  # whether workers do the same work
        self.wants_hint = False

    def show(self, event: dict[str, Any]) -> None:
        getattr(self, f"_{event['event']}")(event)

    def _start(self, event: dict[str, Any]) -> None:
        again = f", from step {event['step']:,}" if event["step"] else ""
        self.progress.say(f"training on {event['rows']:,} rows with {event['workers']} worker(s){again}")
        self.step = event["step"]
        self.is_alike = event["alike"]
        self.wants_hint = event["can_balance"] and event["balance"] == "off"
        self.progress.say(_HEAD)
        self.progress.start("train", event["total_steps"] - event["step"], "step")

    def _step(self, event: dict[str, Any]) -> None:
        first = f"epoch {event['epoch']}"
        is_telling = self.is_alike and all(event["shares"])  # who had no rows took no time
        if is_telling and (straggler := self.stragglers.observe(event["compute_seconds"])):
            first = straggler.short  # a narrow terminal has no room for both
            self._name(straggler)
        loss = "not finite" if event["loss"] is None else f"{event['loss']:.4f}"
        note = f"{first}  loss {loss}{self._rate(event)}"
        done, self.step = event["step"] - self.step, event["step"]  # workers that go apart tell of several at once
        self.progress.advance(done, note if event["step"] > 1 else "")

    def _rate(self, event: dict[str, Any]) -> str:
        before, self.clock = self.clock, event["seconds"]
        if before is not None:
            self.samples = _FADE * self.samples + event["samples"]
            self.seconds = _FADE * self.seconds + event["seconds"] - before
        return f"  {self.samples / self.seconds:,.0f} samples/s" if self.seconds > 0 else ""

    def _name(self, straggler: Straggler) -> None:
        if straggler.rank not in self.named and self.wants_hint:
            self.named.add(straggler.rank)
            self.progress.say(f"{straggler}; --balance steps:10 would give it less of each batch")

    def _epoch(self, event: dict[str, Any]) -> None:
        self.clock = None  # the next step's time holds the validation too
        valid = event["valid"]
        baseline = valid.get("majority_baseline", {})
        self.progress.say(
            f"{event['epoch']:>5}  {_number(event['train_loss']):>10}  {_number(valid.get('accuracy')):>9}  "
            f"{_number(baseline.get('accuracy')):>8}  {_number(valid.get('f1_macro')):>8}  "
            f"{_number(valid.get('auc')):>6}  {event['samples_per_s']:>9,.0f}  {event['seconds']:>7.1f}"
        )

    def _warning(self, event: dict[str, Any]) -> None:
        self.progress.warn(f"warning: {event['message']}")

    def _end(self, event: dict[str, Any]) -> None:
        self.result = {name: value for name, value in event.items() if name not in ("event", "step")}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
