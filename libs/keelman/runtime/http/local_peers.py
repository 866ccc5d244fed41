"""Refuses TCP connections of other users of this host: by the kernel's table of sockets, which has each socket's user.

A connection of a process that has closed its socket already belongs to no user in that table: it is refused, since its
request could still be read. Linux only. Format: https://www.kernel.org/doc/Documentation/networking/proc_net_tcp.txt
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.logs.logging import get_logger

log = get_logger()
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _USER, _INODE = 1, 2, 7, 9


@dataclass(frozen=True, slots=True)
class LocalPeers:
    """Admits connections of other hosts, and of users of this host but `refused`. This process's user is admitted."""

    refused: range

    def admits(self, client: socket.socket) -> bool:
        """Returns whether the connection is admitted. Reads the table: some milliseconds with 10,000 connections."""
        try:
            own, peer = client.getsockname(), client.getpeername()
        except OSError:  # it is closed
            return False
        found = peer_user(own, peer)
        if found is None:
            is_refused = peer[0] == own[0] or _address(peer[0]).is_loopback
        else:
            user, is_open = found
            is_refused = not is_open or (user in self.refused and user != os.geteuid())
        if is_refused:
            log.warning("local_peer_refused", peer=f"{peer[0]}:{peer[1]}", user=None if found is None else found[0])
        return not is_refused


def peer_user(own: tuple[str, int], peer: tuple[str, int]) -> tuple[int, bool] | None:
    """Returns the user of the socket at the other end of a connection and whether a process has it open; None if it is
    not a socket of this host."""
    wanted = {(_hex(*peer[:2], mapped=mapped), _hex(*own[:2], mapped=mapped)) for mapped in (False, True)}
    for fields in _sockets():
        if (fields[_LOCAL], fields[_REMOTE]) in wanted:
            return int(fields[_USER]), fields[_INODE] != "0"
    return None


def _sockets() -> Iterator[list[str]]:
    for table in TABLES:
        try:
            with table.open(encoding="ascii") as file:
                next(file, None)
                yield from (line.split() for line in file)
        except FileNotFoundError:
            continue


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(host.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def _hex(host: str, port: int, *, mapped: bool) -> str:
    """Returns an address as the table has it: words of 32 bits in the host's order, in hex."""
    address = _address(host)
    packed = address.packed
    if mapped and isinstance(address, ipaddress.IPv4Address):
        packed = ipaddress.IPv6Address(f"::ffff:{address}").packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
