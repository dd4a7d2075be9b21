"""When shares follow the speeds of the workers. Apart from the rest because options must not load numpy."""

from __future__ import annotations

from tenor.errors import UsageError

OFF, EPOCH = 0, -1


def parse_mode(text: str) -> int:
    """`off`, `epoch` or `steps:N` as OFF, EPOCH or N."""
    if text in ("off", "epoch"):
        return OFF if text == "off" else EPOCH
    word, _, count = text.partition(":")
    if word != "steps" or not (count.isascii() and count.isdecimal()) or int(count) == 0:
        raise UsageError(f"--balance cannot be {text!r}", remedy="give off, epoch, or steps:10")
    return int(count)
