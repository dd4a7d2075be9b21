"""Ranks meet at the requested address and listen nowhere else."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

import psutil
import pytest
import torch
from helpers.workers import WorkerFailure, spawn_workers

from tenor.errors import UsageError, WorkerError
from tenor.groups import meeting
from tenor.groups.choose import join
from tenor.world import World, detect

LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def meet_and_look(backend: str = "gloo") -> dict[str, Any]:
    """Join the group, add up a tensor, and return the addresses at which this process listens."""
    world = detect()
    group = join(world, backend, 30.0)
    total = torch.ones(3) * (world.rank + 1)
    group.start_sum(total).wait()
    found = [c.laddr.ip for c in psutil.Process().net_connections("inet") if c.status == psutil.CONN_LISTEN]
    total2 = torch.ones(1)
    group.start_sum(total2).wait()  # no rank leaves before all have looked
    group.close()
    return {"total": total.tolist(), "listening": found, "launcher": world.launcher}


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("localhost", marks=pytest.mark.soak)])
def test_a_run_on_loopback_listens_on_loopback_only(host: str) -> None:
    env = {"MASTER_ADDR": host, "MASTER_PORT": str(free_port())}
    for rank, said in enumerate(spawn_workers(2, f"{__file__}:meet_and_look", 60, env=env)):
        assert said["total"] == [3.0, 3.0, 3.0]
        assert said["listening"] and set(said["listening"]) <= LOOPBACK, (rank, said)


def join_with_own_backend() -> None:
    world = detect()
    meeting.open_store(world, f"made-up-{world.rank}", timedelta(seconds=20))


def test_different_back_ends_are_refused() -> None:
    env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    with pytest.raises(WorkerFailure, match="chose the back end made-up-"):
        spawn_workers(2, f"{__file__}:join_with_own_backend", 60, env=env)


def world_at(rendezvous: str, local_size: int = 2) -> World:
    return World(0, 2, 0, local_size, launcher="slurm", rendezvous=rendezvous)


def bound(host: str, world: World) -> str:
    with meeting._listen(host, 0, world) as listener:
        return str(listener.getsockname()[0])


def test_the_store_listens_at_the_requested_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bound("127.0.0.1", world_at("", 1)) == "127.0.0.1"
    assert bound("127.0.0.2", world_at("", 1)) == "127.0.0.2"
    names = {"node1": "127.0.1.1", "far": "192.0.2.1"}
    found = meeting.resolve
    monkeypatch.setattr(meeting, "resolve", lambda host: found(names.get(host, host)))
    assert bound("node1", world_at("", 2)) == "127.0.1.1"  # one host
    assert bound("node1", world_at("", 1)) in ("::", "0.0.0.0")  # its own name is loopback, but others must reach it
    assert bound("far", world_at("", 1)) in ("::", "0.0.0.0")  # not an address of this machine


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WorkerError, match=f"cannot listen at 127.0.0.1:{port}.*MASTER_PORT"):
            meeting._listen("127.0.0.1", port, world_at(""))


@pytest.mark.parametrize("bad", ["tcp://", "tcp://host", "tcp://host:x", "tcp://host:99999", "elsewhere"])
def test_an_invalid_address_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="cannot meet at"):
        meeting.split_address(world_at(bad))


def test_the_interface_is_that_of_the_first_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    meeting.choose_interface(world_at("tcp://127.0.0.1:29500", 1))
    assert os.environ == {"GLOO_SOCKET_IFNAME": "lo"}
    monkeypatch.setattr(os, "environ", {"GLOO_SOCKET_IFNAME": "eth7"})
    meeting.choose_interface(world_at("tcp://127.0.0.1:29500"))
    assert os.environ == {"GLOO_SOCKET_IFNAME": "eth7"}  # the user's choice
    own = [
        (name, one.address)
        for name, every in psutil.net_if_addrs().items()
        for one in every
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    ]
    for name, address in own:
        assert meeting.interface_towards(address) == name
    assert meeting.interface_towards("127.0.0.1") is None
