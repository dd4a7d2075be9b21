"""Reads the metrics.jsonl of a run line by line within limits. In a long log, neighbouring steps are merged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from tenor.errors import RunError
from tenor.reports.values import levels, numbers
from tenor.store.trusted import DEPTH, kept_bytes, open_regular

MOST_BYTES = 512 << 20  # read from the file
LINE_BYTES = 4 << 20
MOST_EVENTS = 20_000  # kept per kind of event
KEPT_BYTES = 24 << 20  # kept per kind of event, see `kept_bytes`

_STEP = ("event", "epoch", "step", "seconds", "loss", "shares", "compute_seconds", "wait_seconds")
_EPOCH = ("event", "epoch", "step", "seconds", "train_loss", "valid")
_SUMS = ("compute_seconds", "wait_seconds")

Event = dict[str, Any]


@dataclass
class Log:
    """The events of a run by kind, and notes about what could not be read."""

    steps: list[Event] = field(default_factory=list)
    epochs: list[Event] = field(default_factory=list)
    end: Event = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_log(file: Path) -> Log:
    """Read the events of a log.

    The notes say how many lines could not be read. An incomplete last line does not count: a killed run leaves one.
    """
    log, unread, sizes = Log(), 0, {"step": 0, "epoch": 0}
    try:
        with open_regular(file, RunError) as handle, open(handle, "rb", closefd=False) as stream:
            for line in _lines(stream):
                if line is None:
                    log.notes.append(f"Only the first {MOST_BYTES:,} bytes of metrics.jsonl were read.")
                    break
                event = _parse(line)
                if event is None:
                    unread += line.endswith(b"\n")
                    continue
                _keep(log, event, kept_bytes(line), sizes)
    except FileNotFoundError:
        return log
    if unread:
        lines = f"{unread:,} line{'s' if unread > 1 else ''} of metrics.jsonl"
        log.notes.append(f"{lines} could not be read and {'were' if unread > 1 else 'was'} skipped.")
    return log


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines with their newlines; only the newline of an overlong line; and None at the limit of bytes."""
    read = 0
    while line := stream.readline(LINE_BYTES):
        read += len(line)
        if read > MOST_BYTES:
            yield None
            return
        is_long = False
        while len(line) == LINE_BYTES and not line.endswith(b"\n") and read <= MOST_BYTES:
            is_long, line = True, stream.readline(LINE_BYTES)
            read += len(line)
        yield b"\n" if is_long else line


def _parse(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and levels(event, DEPTH) <= DEPTH else None


def _keep(log: Log, event: Event, size: int, sizes: dict[str, int]) -> None:
    kind = event.get("event")
    if kind == "end":
        log.end = event
    elif kind == "step":
        log.steps.append({name: event[name] for name in _STEP if name in event})
        sizes[kind] += size
        while len(log.steps) > 1 and (len(log.steps) > MOST_EVENTS or sizes[kind] > KEPT_BYTES):
            log.steps, sizes[kind] = _halve(log.steps), sizes[kind] // 2
    elif kind == "epoch":
        log.epochs.append({name: event[name] for name in _EPOCH if name in event})
        sizes[kind] += size
        while len(log.epochs) > 1 and (len(log.epochs) > MOST_EVENTS or sizes[kind] > KEPT_BYTES):
            log.epochs, sizes[kind] = log.epochs[::-1][::2][::-1], sizes[kind] // 2


def _halve(steps: list[Event]) -> list[Event]:
    """Merge each two neighbouring events into one, like the events of strategies that synchronise rarely."""
    pairs = [_merge(*pair) for pair in zip(steps[::2], steps[1::2], strict=False)]
    return [*pairs, *steps[2 * len(pairs) :]]


def _merge(first: Event, second: Event) -> Event:
    merged = dict(second)
    for name in _SUMS:
        a, b = first.get(name), second.get(name)
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and numbers(a) and numbers(b):
            merged[name] = [x + y for x, y in zip(a, b, strict=True)]
    return merged
