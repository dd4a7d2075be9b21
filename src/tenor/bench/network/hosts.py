"""Test hosts on one machine: network namespaces that reach each other through a network of a set speed, and no other.

If the kernel has netem (`tc qdisc … netem`), the hosts are joined by virtual cables and a bridge in a namespace of its
own, and netem delays and limits what every cable carries. Otherwise a process carries the packets (see `relay`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tenor.bench.network.relay import PACKET_BYTES
from tenor.bench.network.spec import NetworkSpec
from tenor.errors import UsageError
from tenor.training.launching.hosts import NetworkHost

MOST_HOSTS = 64
QUEUE_PACKETS = 100_000  # that netem may hold; packets beyond that are lost
_ATTACH = 0x400454CA  # TUNSETIFF
_TUN, _PLAIN = 0x0001, 0x1000  # IFF_TUN, IFF_NO_PI
_ALWAYS_FAST = "echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle"  # a step's pause must not slow the next message


@contextlib.contextmanager
def open_hosts(spec: NetworkSpec, count: int) -> Iterator[list[NetworkHost]]:
    """Make `count` hosts, and remove them afterwards.

    Raises:
        UsageError: This process may not create network namespaces, or a program for it is missing.
    """
    if reason := why_not():
        raise UsageError(f"--network cannot create test hosts: {reason}", remedy="run as root on Linux, or omit it")
    if not 2 <= count <= MOST_HOSTS:
        raise UsageError(f"--network cannot join {count} hosts", remedy=f"use 2 to {MOST_HOSTS} processes")
    hosts = [NetworkHost(f"tenor-{os.getpid()}-{n}", f"10.201.9.{n + 1}") for n in range(count)]
    join = _netem if has_netem() else _relayed
    with contextlib.ExitStack() as stack:
        for host in hosts:
            stack.enter_context(_namespace(host.name))
            _run(*host.command(["sh", "-c", _ALWAYS_FAST]))
        stack.enter_context(join(spec, hosts))
        yield hosts


def why_not() -> str:
    """Why this process cannot create test hosts; empty if it can."""
    if not sys.platform.startswith("linux"):
        return "they need Linux"
    if missing := [name for name in ("ip", "tc") if shutil.which(name) is None]:
        return f"the program {missing[0]} is missing (package iproute2)"
    return "only root can create network namespaces" if os.geteuid() != 0 else ""


def has_netem() -> bool:
    """Whether the kernel has netem, found out in a namespace that is removed again."""
    name = f"tenor-{os.getpid()}-try"
    with _namespace(name):
        words = NetworkHost(name, "").command(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])
        return subprocess.run(words, check=False, capture_output=True, timeout=20).returncode == 0


@contextlib.contextmanager
def _netem(spec: NetworkSpec, hosts: Sequence[NetworkHost]) -> Iterator[None]:
    """Join the hosts by cables to a bridge."""
    bridge = f"{hosts[0].name}-bridge"
    with _namespace(bridge):
        for words in netem_commands(spec, hosts, bridge):
            _run(*words)
        yield


def netem_commands(spec: NetworkSpec, hosts: Sequence[NetworkHost], bridge: str) -> list[list[str]]:
    """The commands that join existing namespaces; what leaves a host is delayed, and both directions are limited."""
    rate, delay, room = f"{spec.bits_per_s:.0f}bit", f"{spec.latency_s * 1e6:.0f}us", str(QUEUE_PACKETS)
    commands = [["ip", "-n", bridge, "link", "add", "bridge0", "type", "bridge"]]
    commands += [["ip", "-n", bridge, "link", "set", "bridge0", "up"]]
    for number, host in enumerate(hosts):
        port = f"port{number}"
        shape = ["root", "netem", "rate", rate, "limit", room]
        commands += [
            ["ip", "-n", host.name, "link", "add", "net0", "type", "veth", "peer", "name", port, "netns", bridge],
            ["ip", "-n", bridge, "link", "set", port, "master", "bridge0", "up"],
            *_bring_up(host, "net0"),
            ["tc", "-n", host.name, "qdisc", "add", "dev", "net0", *shape, "delay", delay],
            ["tc", "-n", bridge, "qdisc", "add", "dev", port, *shape],
        ]
    return commands


@contextlib.contextmanager
def _relayed(spec: NetworkSpec, hosts: Sequence[NetworkHost]) -> Iterator[None]:
    """Give each host a TUN device, and start the process that carries the packets between them."""
    devices: list[int] = []
    try:
        for number, host in enumerate(hosts):
            name = f"tenor{os.getpid() % 100_000}-{number}"
            devices.append(_open_tun(name))
            _run("ip", "link", "set", name, "netns", host.name)
            _run("ip", "-n", host.name, "link", "set", name, "mtu", PACKET_BYTES)
            for words in _bring_up(host, name):
                _run(*words)
        job = {"devices": devices, "bytes_per_s": spec.bytes_per_s, "latency_s": spec.latency_s}
        words = [sys.executable, "-m", "tenor.bench.network.relay", json.dumps(job)]
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=devices, env=path) as relay:
            try:
                yield
            finally:
                relay.stdin.close() if relay.stdin else None  # which ends the process
                relay.wait(timeout=20)
    finally:
        for device in devices:
            os.close(device)


def _bring_up(host: NetworkHost, device: str) -> list[list[str]]:
    return [
        ["ip", "-n", host.name, "address", "add", f"{host.address}/24", "dev", device],
        ["ip", "-n", host.name, "link", "set", device, "up"],
        ["ip", "-n", host.name, "link", "set", "lo", "up"],
    ]


def _open_tun(name: str) -> int:
    """A new TUN device; it disappears when its handle is closed."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(handle, _ATTACH, struct.pack("16sH22x", name.encode(), _TUN | _PLAIN))
    return handle


@contextlib.contextmanager
def _namespace(name: str) -> Iterator[None]:
    _run("ip", "netns", "add", name)
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True, timeout=20)


def _run(*words: object) -> None:
    command = [str(word) for word in words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    if done.returncode:
        reason = done.stderr.strip() or f"exit code {done.returncode}"
        remedy = "omit --network, or fix the cause"
        raise UsageError(f"--network cannot create test hosts: `{' '.join(command)}` failed ({reason})", remedy=remedy)
