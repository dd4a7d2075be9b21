"""A group of one process: sums and gathers return their input."""

from __future__ import annotations

from torch import Tensor

from tenor.groups.base import Pending


class Alone:
    rank = 0
    size = 1

    def start_sum(self, tensor: Tensor) -> Pending:
        return _Done()

    def gather(self, values: Tensor) -> Tensor:
        return values

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        raise AssertionError("a process alone has no other rank to send to")

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending:
        raise AssertionError("a process alone has no other rank to receive from")

    def split(self, colour: int) -> Alone:
        return self

    def close(self) -> None:
        pass

    def abandon(self, exit_code: int) -> None:
        pass


class _Done:
    def wait(self) -> None:
        pass
