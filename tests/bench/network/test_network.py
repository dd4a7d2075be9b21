"""Test hosts: how networks are written, when packets arrive, and real namespaces."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.hosts import needs_hosts
from hypothesis import given
from hypothesis import strategies as st

from tenor.bench.network import hosts as test_hosts
from tenor.bench.network.hosts import netem_commands, open_hosts
from tenor.bench.network.relay import Link, Switch
from tenor.bench.network.spec import NetworkSpec, parse_network
from tenor.errors import UsageError
from tenor.training.launching.hosts import NetworkHost
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings


@pytest.mark.parametrize(
    ("text", "bits", "seconds"),
    [("1gbit,5ms", 1e9, 0.005), ("100mbit, 200us", 1e8, 2e-4), ("2.5gbit,0ms", 2.5e9, 0.0), ("64kbit,1s", 64e3, 1.0)],
)
def test_networks_as_people_write_them(text: str, bits: float, seconds: float) -> None:
    found = parse_network(text)
    assert (found.bits_per_s, found.latency_s) == pytest.approx((bits, seconds))
    assert parse_network(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "fast", "1gbit", "5ms", "1gbit,5", "0mbit,1ms", "1GB,5ms", "1gbit,5ms,3", "-1gbit,1ms"]
)
def test_wrong_networks_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="network cannot be"):
        parse_network(text)


def test_one_sender_gets_the_whole_bandwidth() -> None:
    """Ten packets of 1000 bytes at 1000 bytes per second arrive one second apart, after the latency."""
    switch = Switch(1000.0, 0.25, [Link(), Link()])
    assert [switch.arrival(0.0, 0, 1, 1000) for _ in range(10)] == pytest.approx([n + 1.25 for n in range(10)])
    assert switch.arrival(20.0, 0, 1, 500) == pytest.approx(20.75)


def test_two_senders_share_the_link_of_one_receiver() -> None:
    switch = Switch(1000.0, 0.0, [Link(), Link(), Link()])
    arrivals = [switch.arrival(0.0, source, 2, 1000) for _ in range(5) for source in (0, 1)]
    assert max(arrivals) == pytest.approx(10.0)  # 10,000 bytes into one link
    apart = [switch.arrival(100.0, source, target, 1000) for source, target in ((0, 1), (1, 0))]
    assert apart == pytest.approx([101.0, 101.0])  # both directions of a link are free


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(1, 5000)), min_size=1, max_size=30))
def test_packets_keep_their_order_and_never_exceed_the_bandwidth(packets: list[tuple[float, int]]) -> None:
    switch = Switch(1000.0, 0.1, [Link(), Link()])
    packets = sorted(packets)
    arrivals = [switch.arrival(when, 0, 1, size) for when, size in packets]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] - 0.1 >= packets[0][0] + sum(size for _, size in packets) / 1000 - 1e-9 or len(packets) > 1
    assert all(
        arrival >= when + size / 1000 + 0.1 - 1e-9 for arrival, (when, size) in zip(arrivals, packets, strict=True)
    )


def test_the_commands_for_netem() -> None:
    hosts = [NetworkHost("a", "10.201.9.1"), NetworkHost("b", "10.201.9.2")]
    lines = [" ".join(words) for words in netem_commands(NetworkSpec(1e8, 0.005), hosts, "switch")]
    assert "tc -n a qdisc add dev net0 root netem rate 100000000bit limit 100000 delay 5000us" in lines
    assert "tc -n switch qdisc add dev port1 root netem rate 100000000bit limit 100000" in lines
    assert "ip -n b address add 10.201.9.2/24 dev net0" in lines
    assert lines.index("ip -n switch link add bridge0 type bridge") < lines.index(
        "ip -n switch link set port0 master bridge0 up"
    )


def test_why_there_may_be_no_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_hosts.os, "geteuid", lambda: 1000)
    with (
        pytest.raises(UsageError, match="only root can create network namespaces"),
        open_hosts(NetworkSpec(1e9, 0.0), 2),
    ):
        pass
    monkeypatch.setattr(test_hosts.shutil, "which", lambda name: None)
    assert "package iproute2" in test_hosts.why_not()


@needs_hosts
@pytest.mark.serial
def test_messages_take_the_latency_and_the_bandwidth() -> None:
    """50 ms each way: a small message and its answer need 100 ms, 1 MB at 80 mbit 100 ms more."""
    listen = (
        "import socket,sys; s=socket.create_server((sys.argv[1], 5000)); print('ready', flush=True); c=s.accept()[0]\n"
    )
    listen += "for size in (1, 1_000_000):\n left=size\n while left: left-=len(c.recv(left))\n c.sendall(b'x')"
    ask = "import socket,sys,time; c=socket.create_connection((sys.argv[1], 5000)); c.setsockopt(6, 1, 1)\n"
    ask += "for size in (1, 1_000_000):\n t=time.perf_counter(); c.sendall(bytes(size)); c.recv(1)\n"
    ask += " print(time.perf_counter()-t)"
    with open_hosts(parse_network("80mbit,50ms"), 2) as (one, other):
        command = one.command([sys.executable, "-c", listen, one.address])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
            asked = subprocess.run(
                other.command([sys.executable, "-c", ask, one.address]),
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            server.wait(timeout=30)
    small, large = map(float, asked.stdout.split())
    assert small >= 0.1 and large >= 0.2
    assert (
        subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.count(one.name) == 0
    )


@needs_hosts
@pytest.mark.parametrize(("strategy", "processes"), [("allreduce", 2), ("async", 3)])
def test_workers_on_test_hosts_train_as_workers_of_one_machine(tmp_path: Path, strategy: str, processes: int) -> None:
    settings = TrainSettings(task="points", workers=2, threads=1, strategy=strategy, max_steps=6, test=False)
    settings = TrainSettings(**{**vars(settings), **({"staleness": "0"} if strategy == "async" else {})})
    with open_hosts(parse_network("1gbit,1ms"), processes) as hosts:
        found = train("points", tmp_path / "apart", settings, hosts=hosts).values
    assert found["bytes_sent"] > 0
    together = train("points", tmp_path / "together", TrainSettings(**{**vars(settings), "backend": "gloo"})).values
    assert found["weights_sha256"] == together["weights_sha256"]
