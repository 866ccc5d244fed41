"""Checks ports, and reserves free ones that stay free until they are used.

A port that was merely free a moment ago may be taken by the time a process listens on it: by a process that got the
same one, or by an outgoing connection, which gets its port from the system's own range and keeps it for a minute after
its end. So the ports given here are below that range, and a process that gives ports holds their block against every
other process that gives ports in this way: it binds the UDP port of the block's first number, which the system releases
when the process ends, however that happens.
"""

from __future__ import annotations

import errno
import random
import socket
from collections import deque

from keelman.model.errors import InvalidArgument, Unavailable

LOWEST_PORT, BLOCK, BLOCKS = 20_000, 40, 300  # to 31 999: Linux gives connections those from 32 768 on
MAX_GIVEN = 50  # blocks of single ports; then the first ports are given again, if they are free by then


def port_is_free(host: str, port: int) -> bool:
    """Returns True if a listener could bind now. A port in TIME_WAIT counts as free."""
    return _bind_error(host, port) is None


def check_port(label: str, host: str, port: int) -> None:
    """Raises Unavailable (PORT_TAKEN) where the port is taken, or InvalidArgument where a listener could not bind for
    another reason.

    `label` is the service whose settings host and port are meant, for the message; `gateway.http` are its http_host and
    http_port.
    """
    error = _bind_error(host, port)
    if error is None:
        return
    if error.errno == errno.EADDRINUSE:
        raise port_taken(label, host, port)
    if error.errno == errno.EACCES:
        raise InvalidArgument.of(
            _setting(label, "port"), port, "a port that this user may open (usually 1024 or higher)"
        )
    raise InvalidArgument.of(_setting(label, "host"), host, f"an address of this host ({error.strerror or error})")


def port_taken(label: str, host: str, port: int) -> Unavailable:
    """Returns the error for a port that another process listens on; its message tells how to configure another port."""
    setting = _setting(label, "port")
    flag = setting.partition(".")[2].replace("_", "-")
    return Unavailable(
        f"{setting}: {port} on {host} is taken by another process: stop it, or give another free port "
        f"with --{flag} or {variable(setting)}",
        reason="PORT_TAKEN",
        metadata={"host": host, "port": str(port)},
    )


def variable(setting: str) -> str:
    """Returns the environment variable of the setting `service.key`."""
    return "KEELMAN_" + setting.replace(".", "_").upper()


class Reserve:
    """The blocks that this process holds. Used from one thread at a time."""

    def __init__(self) -> None:
        self._held: set[int] = set()
        self._fresh: deque[int] = deque()
        self._given: deque[int] = deque()
        self._blocks = 0

    def ports(self, count: int, host: str = "127.0.0.1") -> list[int]:
        """Returns some ports that are free now, all different, and given to no other caller while this process lives.

        For tests and for a process's own children. Raises Unavailable (NO_FREE_PORTS).
        """
        ports: list[int] = []
        for _ in range(count + 2 * BLOCK * MAX_GIVEN):
            if len(ports) == count:
                return ports
            if not self._fresh and self._blocks < MAX_GIVEN:
                self._fresh.extend(self.row(BLOCK, host, whole=False))
                self._blocks += 1
            port = (self._fresh or self._given).popleft()
            self._given.append(port)
            if port not in ports and port_is_free(host, port):
                ports.append(port)
        raise _no_ports(count)

    def row(self, count: int, host: str = "127.0.0.1", *, whole: bool = True) -> range:
        """Returns `count` ports in a row; not `whole`: some may be taken. Raises Unavailable (NO_FREE_PORTS)."""
        blocks_needed = -(-count // BLOCK)
        begin = random.randrange(BLOCKS)
        for first in (*range(begin, BLOCKS), *range(begin)):
            ports = range(LOWEST_PORT + BLOCK * first, LOWEST_PORT + BLOCK * first + count)
            blocks = range(first, first + blocks_needed)
            if blocks[-1] >= BLOCKS or self._held.intersection(blocks) or not self.hold(ports):
                continue
            if not whole or all(port_is_free(host, port) for port in ports):
                return ports
        raise _no_ports(count)

    def hold(self, ports: range) -> bool:
        """Holds the ports of an earlier process's row again. Returns False if another process holds some of them.

        They may be in use. Blocks held before a failure stay held: there are many.
        """
        blocks = range((ports[0] - LOWEST_PORT) // BLOCK, (ports[-1] - LOWEST_PORT) // BLOCK + 1)
        return all(0 <= block < BLOCKS and (block in self._held or self._hold(block)) for block in blocks)

    def _hold(self, block: int) -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lock:
            try:
                lock.bind(("127.0.0.1", LOWEST_PORT + BLOCK * block))
            except OSError:
                return False
            lock.detach()  # for as long as the process lives
        self._held.add(block)
        return True


_RESERVE = Reserve()
free_ports, free_row, hold_row = _RESERVE.ports, _RESERVE.row, _RESERVE.hold
"""Functions on this process's own blocks."""


def _no_ports(count: int) -> Unavailable:
    last = LOWEST_PORT + BLOCK * BLOCKS - 1
    return Unavailable(f"no {count} free ports between {LOWEST_PORT} and {last}", reason="NO_FREE_PORTS")


def _setting(label: str, key: str) -> str:
    service, _, part = label.partition(".")
    return f"{service}.{part}_{key}" if part else f"{service}.{key}"


def _bind_error(host: str, port: int) -> OSError | None:
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
