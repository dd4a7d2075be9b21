"""The forms of `--balance`. A module of its own because `tenor --help` must not load numpy."""

from __future__ import annotations

from tenor.settings import wrong_value

OFF, EPOCH = 0, -1


def parse_mode(text: str) -> int:
    """Parse `off`, `epoch` or `steps:N` into OFF, EPOCH or N."""
    if text in ("off", "epoch"):
        return OFF if text == "off" else EPOCH
    word, _, count = text.partition(":")
    if word != "steps" or not (count.isascii() and count.isdecimal()) or int(count) == 0:
        raise wrong_value("balance", repr(text), "give off, epoch, or steps:N with N of at least 1, such as steps:10")
    return int(count)
