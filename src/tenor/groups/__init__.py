"""The processes that train together and the messages between them: one file per back end, behind one protocol."""

from __future__ import annotations

from tenor.groups.alone import Alone
from tenor.groups.base import Group, Pending, estimate_ring_bytes
from tenor.groups.choose import choose_backend, choose_device, join

__all__ = ["Alone", "Group", "Pending", "choose_backend", "choose_device", "estimate_ring_bytes", "join"]
