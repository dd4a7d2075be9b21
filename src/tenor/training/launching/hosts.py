"""A host of its own for a worker: a network namespace of this machine, for experiments with networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ADDRESS = "TENOR_ADDRESS"  # the variable that gives a worker the address on which it listens


@dataclass(frozen=True)
class NetworkHost:
    """A network namespace with one address. Its processes share the files and the cores of this machine."""

    name: str
    address: str

    def command(self, words: Sequence[str]) -> list[str]:
        """The command line that runs `words` on this host, in the same process."""
        return ["ip", "netns", "exec", self.name, *words]
