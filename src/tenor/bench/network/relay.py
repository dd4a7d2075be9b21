"""Carry packets between test hosts with a set bandwidth and latency, where the kernel has no netem.

Each host has a TUN device whose other end this process holds. A packet leaves its host when the packets before it have
left, at the bandwidth of the host's link; it reaches the other host after the latency, or later if packets of other
hosts fill that host's link. The process runs as `python -m tenor.bench.network.relay` and ends with its starter.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import select
import sys
import time
from dataclasses import dataclass, field

PACKET_BYTES = 65_000  # large packets keep the number of system calls small
LAST_BYTE = 19  # of the receiver's address in an IPv4 header


@dataclass
class Link:
    """The cable of one host: when its two directions are free again."""

    out: float = 0.0
    into: float = 0.0


@dataclass
class Switch:
    """Decides when packets arrive: times in, times out, without devices or clock."""

    bytes_per_s: float
    latency_s: float
    links: list[Link] = field(default_factory=list)

    def arrival(self, now: float, source: int, target: int, size: int) -> float:
        """When a packet of `size` bytes that is sent now arrives."""
        span = size / self.bytes_per_s
        sender, receiver = self.links[source], self.links[target]
        sender.out = max(now, sender.out) + span
        receiver.into = max(sender.out, receiver.into + span)
        return receiver.into + self.latency_s


def carry(devices: list[int], switch: Switch, stop: int) -> None:
    """Carry packets until `stop` can be read or is closed. Device i belongs to the host whose address ends in i + 1."""
    under_way: list[tuple[float, int, int, bytes]] = []  # (arrival, number, device, packet)
    number = 0
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready, _, _ = select.select([stop, *devices], [], [], wait)
        if stop in ready:
            return
        now = time.monotonic()
        for device in ready:
            with contextlib.suppress(OSError):  # the device is down, or another read was faster
                packet = os.read(device, 1 << 17)
                target = packet[LAST_BYTE] - 1
                if packet[0] >> 4 == 4 and 0 <= target < len(devices):
                    due = switch.arrival(now, devices.index(device), target, len(packet))
                    heapq.heappush(under_way, (due, number, devices[target], packet))
                    number += 1
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, _, device, packet = heapq.heappop(under_way)
            with contextlib.suppress(OSError):
                os.write(device, packet)


def main() -> None:
    job = json.loads(sys.argv[1])
    links = [Link() for _ in job["devices"]]
    carry(job["devices"], Switch(job["bytes_per_s"], job["latency_s"], links), sys.stdin.fileno())


if __name__ == "__main__":
    main()
