"""A group of one: every message is the identity."""

from __future__ import annotations

from torch import Tensor

from tenor.training.groups.base import Pending


class Alone:
    rank = 0
    size = 1

    def start_sum(self, tensor: Tensor) -> Pending:
        return _Done()

    def gather(self, values: Tensor) -> Tensor:
        return values

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        raise AssertionError("there is nobody to send to")

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending:
        raise AssertionError("there is nobody to receive from")

    def split(self, colour: int) -> Alone:
        return self

    def close(self) -> None:
        pass


class _Done:
    def wait(self) -> None:
        pass
