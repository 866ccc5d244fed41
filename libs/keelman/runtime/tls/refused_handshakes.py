"""Logs the TLS handshakes that our servers refuse, with peer and reason: grpc's own log line does not name the peer."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.native_lines import NATIVE

log = get_logger()
WAIT_SECONDS = 0.3
"""The longest time from grpc's log line until the connection is closed."""
RECENT_SECONDS = 5.0
"""The longest time from the begin of a handshake to its refusal."""
LOOK_SECONDS = 0.02
QUIET_SECONDS = 60.0
"""A host that fails repeatedly for the same reason is logged once in this time."""
MAX_LOGGED = 1000
TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
ESTABLISHED = "01"
_LINE = re.compile(r"Handshake failed with error \w+: (.*)")
CLOCK = "check the clocks of both hosts; a host whose certificate has ended joins again"
JOIN = "it has to join this installation: keelman node join"
REASONS: Sequence[tuple[str, str, str]] = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "it showed no certificate", JOIN),
    ("certificate has expired", "its certificate has ended, by the clock of this host", CLOCK),
    ("certificate is not yet valid", "its certificate is not good yet, by the clock of this host", CLOCK),
    ("self signed certificate", "its certificate is of another CA", JOIN),
    ("self-signed certificate", "its certificate is of another CA", JOIN),
    ("unable to get local issuer", "its certificate is of another CA", JOIN),
    ("certificate signature failure", "its certificate is of another CA of the same name", JOIN),
    ("HTTP_REQUEST", "it spoke plain HTTP", "this port takes gRPC with TLS alone"),
    ("WRONG_VERSION_NUMBER", "it spoke no TLS", "set its trust in this service: trust = installation, or a CA"),
    ("UNKNOWN_CA", "it does not trust the CA of this process's certificate", "give it the CA of this installation"),
    ("CERTIFICATE_EXPIRED", "by its clock this process's certificate has ended", CLOCK),
    ("BAD_CERTIFICATE", "it does not accept this process's certificate", "check the CA and the address that it calls"),
    (
        "CERTIFICATE_UNKNOWN",
        "it does not accept this process's certificate",
        "check the CA and the address that it calls",
    ),
)
"""A text in grpc's line, its meaning, and the remedy."""


class Refusal(NamedTuple):
    """Why a handshake failed, and the remedy; empty if unknown."""

    reason: str
    remedy: str


def refusal_of(line: str) -> Refusal | None:
    """Returns the refusal in a line of grpc's; None for lines about anything else."""
    match = _LINE.search(line)
    if match is None:
        return None
    for mark, reason, remedy in REASONS:
        if mark in match[1]:
            return Refusal(reason, remedy)
    return Refusal(f"TLS failed: {match[1]}", "")


class Peer(NamedTuple):
    """One connection: the other host and its port, and our port."""

    host: str
    their_port: int
    port: int


class Handshakes:
    """The handshakes on this process's TLS ports. `connected` returns the open connections to some ports; `clock` is
    monotonic."""

    def __init__(
        self,
        connected: Callable[[Collection[int]], Collection[Peer]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connected = connected or connections
        self._clock = clock
        self._ports: list[int] = []
        self._looked = -LOOK_SECONDS
        self._begun: dict[Peer, float] = {}
        self._waiting: deque[tuple[float, Refusal]] = deque()
        self._logged: dict[tuple[str, int, Refusal], float] = {}

    @contextlib.contextmanager
    def of_port(self, port: int) -> Iterator[None]:
        """Logs the refused handshakes on this port, too, until the block is left."""
        is_first = not self._ports
        self._ports.append(port)
        try:
            with NATIVE.give_to(self.take, self.tick) if is_first else contextlib.nullcontext():
                yield
        finally:
            self._ports.remove(port)

    def begin(self) -> None:
        """Notes that a handshake is about to begin. Called by grpc's own threads, for each connection."""
        now = self._clock()
        if now - self._looked < LOOK_SECONDS:  # at this rate, reading the tables would slow the handshakes
            return
        self._looked = now
        there = self._connected(self._ports)
        recent = {peer: at for peer, at in self._begun.items() if peer in there or now - at < RECENT_SECONDS}
        self._begun = dict.fromkeys(there, now) | recent

    def take(self, line: str) -> bool:
        """Takes a line about a handshake, to log it as an event. Returns whether it took the line."""
        refusal = refusal_of(line)
        if refusal is not None:
            self._waiting.append((self._clock(), refusal))
        return refusal is not None

    def tick(self) -> None:
        """Logs the refusals that are due."""
        now = self._clock()
        while self._waiting and now - self._waiting[0][0] >= WAIT_SECONDS:
            at, refusal = self._waiting.popleft()
            self._log(*self._refused(at), refusal, now)

    def _refused(self, at: float) -> tuple[str, int]:
        """Returns host and port of the last handshake that began before this time and whose connection is closed; an
        empty host if none was noted."""
        there = self._connected(self._ports)
        gone = [(begun, peer) for peer, begun in self._begun.items() if begun <= at and peer not in there]
        _, peer = max(gone, default=(at, Peer("", 0, self._ports[0] if len(self._ports) == 1 else 0)))
        return peer.host, peer.port

    def _log(self, host: str, port: int, refusal: Refusal, now: float) -> None:
        """Logs a refusal, unless the same one was logged shortly before."""
        key = host, port, refusal
        if now - self._logged.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        if len(self._logged) >= MAX_LOGGED:
            self._logged.clear()
        self._logged[key] = now
        fields = {"peer": host, "port": port, "reason": refusal.reason, "remedy": refusal.remedy}
        log.warning("handshake_refused", **{key: value for key, value in fields.items() if value})


def connections(ports: Collection[int]) -> set[Peer]:
    """Returns the open connections to these ports of this host, in its network."""
    peers = set[Peer]()
    for table in TABLES:
        with contextlib.suppress(OSError):
            for row in table.read_text().splitlines()[1:]:
                _, local, remote, state, *_ = row.split()
                if state == ESTABLISHED and (port := int(local.rpartition(":")[2], 16)) in ports:
                    host, _, their_port = remote.rpartition(":")
                    peers.add(Peer(_address(host), int(their_port, 16), port))
    return peers


def _address(words: str) -> str:
    """Returns an address from the kernel's tables: words of four bytes in this machine's byte order."""
    raw = b"".join(int(words[n : n + 8], 16).to_bytes(4, sys.byteorder) for n in range(0, len(words), 8))
    address = ipaddress.ip_address(raw)
    return str((isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address)


HANDSHAKES = Handshakes()
