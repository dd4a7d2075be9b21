"""Two simulated hosts: network namespaces joined by a virtual cable, without access to any other network."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Host:
    name: str
    interface: str
    address: str

    def command(self, *words: str) -> list[str]:
        """Return the command line that runs `words` on this host."""
        return ["ip", "netns", "exec", self.name, *words]


@contextlib.contextmanager
def two_hosts() -> Iterator[list[Host]]:
    hosts = [Host(f"tenor-{os.getpid()}-{side}", f"tenor-{side}", f"10.201.7.{n}") for n, side in ((1, "a"), (2, "b"))]
    one, other = hosts
    try:
        for host in hosts:
            _ip("netns", "add", host.name)
        ends = ("type", "veth", "peer", "name", other.interface, "netns", other.name)
        _ip("link", "add", one.interface, "netns", one.name, *ends)
        for host in hosts:
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", host.interface)
            _ip("-n", host.name, "link", "set", host.interface, "up")
            _ip("-n", host.name, "link", "set", "lo", "up")
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "delete", host.name], check=False, capture_output=True, timeout=20)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root can create network namespaces"
    return "" if shutil.which("ip") else "iproute2 is not installed"


needs_hosts = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "available")
