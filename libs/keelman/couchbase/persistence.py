"""Holds events back until every copy of their vbucket has them on disk, so that a failover takes none of them back."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.errors import AwayError, CouchbaseError
from keelman.couchbase.frames import Opcode, ResponseStatus
from keelman.couchbase.vbucket import Event

if TYPE_CHECKING:
    from keelman.couchbase.connection import Connection

_UUID = struct.Struct(">Q")
_OBSERVED = struct.Struct(">BHQQQ")
BUSY_INTERVALS = 10


class HeldEvents:
    """Holds the events of one vbucket. `copies` returns the nodes that have a copy of the vbucket now, `sender` the
    node that sent the held events; `connection` returns a connection to a node."""

    def __init__(
        self,
        vbucket: int,
        interval: float,
        copies: Callable[[], list[NodeAddress]],
        connection: Callable[[NodeAddress], Awaitable[Connection]],
        release: Callable[[list[Event]], None],
        *,
        sender: Callable[[], NodeAddress],
    ) -> None:
        self._vbucket, self._interval = vbucket, interval
        self._copies, self._sender, self._connection, self._release = copies, sender, connection, release
        self._events: deque[Event] = deque()
        self._asking: asyncio.Task[None] | None = None

    def add(self, event: Event) -> None:
        """Holds an event. The nodes are polled for persistence while events are held."""
        self._events.append(event)
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    def drop(self, above: int = -1) -> int:
        """Drops the events above a number, all by default; returns their bytes."""
        dropped = 0
        while self._events and self._events[-1].seqno > above:
            dropped += self._events.pop().size
        return dropped

    def close(self) -> None:
        """Stops polling and drops the held events."""
        self._events.clear()
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self) -> None:
        try:
            while self._events:
                pause = self._interval
                persisted = await self._await_persistence()
                if persisted is None:
                    pause *= BUSY_INTERVALS
                else:
                    released = []
                    while self._events and self._events[0].seqno <= persisted:
                        released.append(self._events.popleft())
                    if released:
                        self._release(released)
                if self._events:
                    await asyncio.sleep(pause)
        finally:
            self._asking = None

    async def _await_persistence(self) -> int | None:
        """Returns the last change up to which every copy has all changes on disk; None if that is unknown now."""
        vbuuid = self._events[0].place.vbuuid
        try:
            sender = self._sender()
            observed = await asyncio.gather(*(self._observe(at, vbuuid, sent=at == sender) for at in self._copies()))
        except (AwayError, CouchbaseError):
            return None
        return None if None in observed or not observed else min(seqno for seqno in observed if seqno is not None)

    async def _observe(self, address: NodeAddress, vbuuid: int, *, sent: bool) -> int | None:
        connection = await self._connection(address)
        answer = await connection.request(Opcode.OBSERVE_SEQNO, vbucket=self._vbucket, value=_UUID.pack(vbuuid))
        if answer.status == ResponseStatus.KEY_NOT_FOUND and sent:
            connection.leave(f"it does not know the history of vbucket {self._vbucket} that it has sent")
        if answer.status != ResponseStatus.SUCCESS or len(answer.value) < _OBSERVED.size:
            return None
        changed, _, now, persisted, _ = _OBSERVED.unpack_from(answer.value)
        return persisted if not changed and now == vbuuid else None


class HeldVbuckets:
    """The held events of all vbuckets of a client. `copies` returns the nodes that have a copy of a vbucket, `sender`
    the node that sends its events; the other parameters are those of HeldEvents."""

    def __init__(
        self,
        interval: float,
        copies: Callable[[int], list[NodeAddress]],
        sender: Callable[[int], NodeAddress],
        connection: Callable[[NodeAddress], Awaitable[Connection]],
        release: Callable[[list[Event]], None],
    ) -> None:
        self._interval, self._copies, self._sender = interval, copies, sender
        self._connection, self._release = connection, release
        self._held: dict[int, HeldEvents] = {}

    def add(self, event: Event) -> None:
        """Holds an event of some vbucket."""
        number = event.vbucket
        held = self._held.get(number)
        if held is None:
            held = self._held[number] = HeldEvents(
                number,
                self._interval,
                lambda: self._copies(number),
                self._connection,
                self._release,
                sender=lambda: self._sender(number),
            )
        held.add(event)

    def drop(self, vbucket: int, above: int = -1) -> int:
        """Drops a vbucket's events above a number, all by default; returns their bytes."""
        held = self._held.get(vbucket)
        return 0 if held is None else held.drop(above)

    def close(self) -> None:
        """Stops polling and drops the held events."""
        for held in self._held.values():
            held.close()
