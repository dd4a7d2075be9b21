"""A network as bandwidth and latency, written as in `--network 1gbit,5ms`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tenor.settings import wrong_value

MOST = 1e9  # of any unit
_RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", re.ASCII)
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)", re.ASCII)
_REMEDY = "give a bandwidth and a latency, such as 1gbit,5ms or 100mbit,200us"


@dataclass(frozen=True)
class NetworkSpec:
    """A network that gives every host a link of its own, with the same bandwidth in both directions."""

    bits_per_s: float
    latency_s: float  # from one host to another, one way

    @property
    def bytes_per_s(self) -> float:
        return self.bits_per_s / 8

    def __str__(self) -> str:
        rate, unit = _largest(self.bits_per_s, _RATES)
        seconds, name = _largest(self.latency_s, _TIMES)
        return f"{rate:g}{unit},{seconds:g}{name}"


def parse_network(text: str, option: str = "network") -> NetworkSpec:
    """Parse `1gbit,5ms`.

    Args:
        text: Bandwidth and latency, separated by a comma.
        option: The setting that an error names.

    >>> parse_network("100mbit,5ms").bytes_per_s
    12500000.0
    """
    rate, _, time = text.partition(",")
    found, latency = _RATE.fullmatch(rate.strip()), _TIME.fullmatch(time.strip())
    if not found or not latency or not 0 < float(found[1]) <= MOST or float(latency[1]) > MOST:
        raise wrong_value(option, f"{text!r:.60}", _REMEDY)
    return NetworkSpec(float(found[1]) * _RATES[found[2]], float(latency[1]) * _TIMES[latency[2]])


def _largest(value: float, units: dict[str, float]) -> tuple[float, str]:
    """The value in its largest unit that leaves at least 1; in the smallest unit otherwise."""
    name = next((unit for unit, size in reversed(units.items()) if value >= size), next(iter(units)))
    return value / units[name], name
