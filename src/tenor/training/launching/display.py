"""What a person sees while a run trains: one progress line, and one table line per epoch."""

from __future__ import annotations

from typing import Any

from tenor.progress import Progress
from tenor.threads import describe_team
from tenor.training.launching.stragglers import Straggler, StragglerDetector

_FADE = 0.9  # weight of a step in the rate, relative to the next step
_HEAD = "epoch  train loss  valid acc  majority  macro-F1     AUC  samples/s  seconds"


class Display:
    """Turns the events of the workers into progress, and keeps the final event as the result."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.result: dict[str, Any] = {}
        self.samples = self.seconds = 0.0  # of roughly the last ten steps; older steps fade
        self.clock: float | None = None  # end of the previous step; None if something else happened since
        self.step = 0
        self.stragglers = StragglerDetector()
        self.named: set[int] = set()  # present stragglers that have been announced
        self.is_alike = True  # whether all workers do the same work
        self.wants_hint = False  # whether to recommend --balance

    def show(self, event: dict[str, Any]) -> None:
        """Show one event; its name selects the method."""
        getattr(self, f"_{event['event']}")(event)

    def _start(self, event: dict[str, Any]) -> None:
        again = f", from step {event['step']:,}" if event["step"] else ""
        team = describe_team(event["workers"], event["threads"])
        self.progress.say(f"training on {event['rows']:,} rows: {team}{again}")
        self.step = event["step"]
        self.is_alike = event["alike"]
        self.wants_hint = event["can_balance"] and event["balance"] == "off"
        self.progress.say(_HEAD)
        self.progress.start("train", event["total_steps"] - event["step"], "step")

    def _step(self, event: dict[str, Any]) -> None:
        first = f"epoch {event['epoch']}"
        is_comparable = self.is_alike and all(event["shares"])  # a worker without rows needs no time
        if is_comparable and (straggler := self.stragglers.observe(event["compute_seconds"])):
            first = straggler.short  # a narrow terminal has no room for both
            self._announce(straggler)
        self.named &= self.stragglers.ranks
        loss = "not finite" if event["loss"] is None else f"{event['loss']:.4f}"
        note = f"{first}  loss {loss}{self._rate(event)}"
        done, self.step = event["step"] - self.step, event["step"]  # an event may stand for several steps
        self.progress.advance(done, note if event["step"] > 1 else "")

    def _rate(self, event: dict[str, Any]) -> str:
        before, self.clock = self.clock, event["seconds"]
        if before is not None:
            self.samples = _FADE * self.samples + event["samples"]
            self.seconds = _FADE * self.seconds + event["seconds"] - before
        return f"  {self.samples / self.seconds:,.0f} samples/s" if self.seconds > 0 else ""

    def _announce(self, straggler: Straggler) -> None:
        if straggler.rank not in self.named and self.wants_hint:
            self.named.add(straggler.rank)
            self.progress.say(f"{straggler}; --balance steps:10 would give it less of each batch")

    def _epoch(self, event: dict[str, Any]) -> None:
        self.clock = None  # the time until the next step includes the validation
        valid = event["valid"]
        baseline = valid.get("majority_baseline", {})
        self.progress.say(
            f"{event['epoch']:>5}  {_number(event['train_loss']):>10}  {_number(valid.get('accuracy')):>9}  "
            f"{_number(baseline.get('accuracy')):>8}  {_number(valid.get('f1_macro')):>8}  "
            f"{_number(valid.get('auc')):>6}  {event['samples_per_s']:>9,.0f}  {event['seconds']:>7.1f}"
        )

    def _note(self, event: dict[str, Any]) -> None:
        self.progress.say(event["message"])

    def _warning(self, event: dict[str, Any]) -> None:
        self.progress.warn(f"warning: {event['message']}")

    def _end(self, event: dict[str, Any]) -> None:
        self.result = {name: value for name, value in event.items() if name not in ("event", "step")}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
