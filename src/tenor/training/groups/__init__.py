"""The processes that train together, and the few messages they need: one file a back end behind one protocol."""

from __future__ import annotations

from tenor.training.groups.alone import Alone
from tenor.training.groups.base import Group, Pending
from tenor.training.groups.choose import choose_backend, choose_device, join

__all__ = ["Alone", "Group", "Pending", "choose_backend", "choose_device", "join"]
