"""The store at which the ranks of a run meet: it listens at the requested address and nowhere else.

torch's own store listens on all interfaces, whatever its address is. So the first rank opens the listening socket
itself and passes it to the store. Gloo listens at the address of one interface: loopback if all ranks meet on loopback,
otherwise the interface that leads to the first host, unless GLOO_SOCKET_IFNAME names another one.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from datetime import timedelta
from urllib.parse import urlsplit

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import Store

from tenor.errors import UsageError, WorkerError
from tenor.world import World

INTERFACE = "GLOO_SOCKET_IFNAME"
GET_ADDRESS = 0x8915  # SIOCGIFADDR of Linux


def open_store(world: World, backend: str, timeout: timedelta) -> Store:
    """The store at the world's rendezvous, tcp://HOST:PORT. The first rank serves it.

    Raises:
        UsageError: The ranks have chosen different back ends.
        WorkerError: The host is unknown, or the port is in use.
    """
    host, port = split_address(world)
    if world.is_first:
        handle = _listen(host, port, world).detach()  # the store closes it
        store = TCPStore(host, port, world.size, True, timeout, master_listen_fd=handle)
    else:
        store = TCPStore(host, port, world.size, False, timeout)
    chosen = store.compare_set("tenor/backend", "", backend).decode()
    if chosen != backend:
        remedy = "give the same --backend and --device on every host"
        raise UsageError(f"rank {world.rank} chose the back end {backend}, another rank chose {chosen}", remedy=remedy)
    return store


def split_address(world: World) -> tuple[str, int]:
    """Host and port of the world's rendezvous."""
    try:
        found = urlsplit(world.rendezvous)
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise UsageError(
            f"the workers cannot meet at {world.rendezvous!r}",
            remedy="set MASTER_ADDR to a host and MASTER_PORT to a port",
        )
    return host, port


def _listen(host: str, port: int, world: World) -> socket.socket:
    """A socket at the host's own address.

    It listens on all interfaces only if other hosts cannot reach that address: it does not belong to this machine (as
    behind a load balancer), or it is loopback although there are other hosts.
    """
    family, address = resolve(host)
    try:
        if not stays_here(host, world) and _is_loopback(address):
            return _listen_everywhere(port)
        return socket.create_server((address, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return _listen_everywhere(port)
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = "set MASTER_PORT to a free port, the same for all workers"
        raise WorkerError(f"cannot listen at {host}:{port} ({reason})", remedy=remedy) from error


def _listen_everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def resolve(host: str) -> tuple[socket.AddressFamily, str]:
    """The family and the number of a host's address; the first IPv4 address if there are several."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        remedy = "set MASTER_ADDR to its address"
        raise WorkerError(f"this machine cannot resolve the host {host!r}", remedy=remedy) from error
    family, *_, place = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, str(place[0])


def stays_here(host: str, world: World) -> bool:
    """Whether all ranks are on this machine and meet on loopback, given as an address or as a host name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return world.is_one_host and _is_loopback(resolve(host)[1])


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def choose_interface(world: World) -> None:
    """Choose the interface on which gloo listens, unless the user has chosen one."""
    if world.rendezvous.startswith("file://"):
        own = interface_towards(world.address) if world.address else None
        os.environ[INTERFACE] = own or loopback_interface()
        return
    if INTERFACE in os.environ:
        return
    host, _ = split_address(world)
    name = loopback_interface() if stays_here(host, world) else interface_towards(resolve(host)[1])
    if name:
        os.environ[INTERFACE] = name


def interface_towards(address: str) -> str | None:
    """The interface that leads to an address; None if it is unknown, as without Linux or IPv4."""
    if ":" in address or _is_loopback(address):
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # sends nothing
        except OSError:
            return None
        own = probe.getsockname()[0]
        return next((name for _, name in socket.if_nameindex() if _address_of(name, probe) == own), None)


def _address_of(interface: str, probe: socket.socket) -> str | None:
    import fcntl

    try:
        answer = fcntl.ioctl(probe.fileno(), GET_ADDRESS, struct.pack("256s", interface.encode()[:15]))
    except OSError:  # the interface has no address
        return None
    return socket.inet_ntoa(answer[20:24])


def loopback_interface() -> str:
    """`lo` on Linux, `lo0` on macOS."""
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if not names:
        raise UsageError("this machine has no loopback interface", remedy="bring it up, or train with --workers 1")
    return names[0]
