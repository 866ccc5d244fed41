"""Slows calls with unknown credentials down, by the address that they come from. Callers who are known are never
delayed."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keelman.model.errors import KeelmanError, Unauthenticated

SLOWED = frozenset(("UNKNOWN_TOKEN", "UNKNOWN_USER", "BAD_HEADER", "BAD_TOKEN", "UNKNOWN_KEY"))
"""The reasons of refusals that count: of credentials that were shown and are of no caller."""
WINDOW_SECONDS = 60.0
FIRST_SECONDS, MAX_SECONDS = 0.1, 5.0
"""The delay of the first refusal beyond the free ones, which doubles with each further one, and the longest."""
MAX_DOUBLINGS = 10
"""The number of failures beyond the free ones that are remembered: delays end soon after the failures end."""
MAX_PEERS = 10_000
"""The number of addresses that are remembered: the ones whose last failure is the most recent."""
MAX_WAITING, MAX_WAITING_OF_PEER = 256, 16
"""The number of refusals that are delayed at once, in all and of one address; others are answered at once, so that
waiting costs no more memory."""


@dataclass(slots=True)
class _Peer:
    level: float
    at: float


class Failures:
    """The failures of each address, and the delays of its refusals. Used in one loop."""

    def __init__(
        self,
        free: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`free`: the number of failures within a minute whose answers are not delayed."""
        self._free = free
        self._clock = clock
        self._sleep = sleep
        self._peers: OrderedDict[str, _Peer] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    async def delay(self, error: KeelmanError, address: str) -> None:
        """Counts a refusal of a call from this address, and returns when it may be answered."""
        if not isinstance(error, Unauthenticated) or error.reason not in SLOWED:
            return
        peer = network_of(address)
        seconds = self.failed(peer)
        if not seconds or self._waiting[peer] >= MAX_WAITING_OF_PEER or self._waiting.total() >= MAX_WAITING:
            return
        self._waiting[peer] += 1
        try:
            await self._sleep(seconds)
        finally:
            self._waiting[peer] -= 1
            if not self._waiting[peer]:
                del self._waiting[peer]

    def failed(self, peer: str) -> float:
        """Counts a failure; returns the seconds by which its answer is delayed."""
        now = self._clock()
        known = self._peers.pop(peer, None)
        level = 0.0 if known is None else max(0.0, known.level - (now - known.at) * self._free / WINDOW_SECONDS)
        self._peers[peer] = _Peer(min(level + 1, self._free + MAX_DOUBLINGS), now)
        if len(self._peers) > MAX_PEERS:
            self._peers.popitem(last=False)
        excess = level + 1 - self._free
        return 0.0 if excess < 1 else min(MAX_SECONDS, FIRST_SECONDS * 2.0 ** min(excess - 1, MAX_DOUBLINGS))


def network_of(address: str) -> str:
    """Returns the part of an address that a host cannot change as it likes: of IPv6 the first 64 bits."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.IPv6Network((parsed, 64), strict=False).network_address)
    return address
