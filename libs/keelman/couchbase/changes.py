"""Follows vbuckets: opens their streams on the right nodes, reopens streams that end, and returns their events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keelman.couchbase.cluster import BucketCluster, failover_log
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import COLLECTION_DROPPED, Connection
from keelman.couchbase.errors import AwayError, CouchbaseError, RefusedError
from keelman.couchbase.frames import PASSING, Feature, Frame, Opcode, ResponseStatus
from keelman.couchbase.handshake import NO_VALUE, PRODUCER, XATTRS, no_reader, status_text
from keelman.couchbase.manifest import Collection, CollectionManifest, Selection
from keelman.couchbase.nodes import AGAIN_SECONDS, MAX_AGAIN_SECONDS, NodeConnections
from keelman.couchbase.persistence import HeldVbuckets
from keelman.couchbase.vbucket import SEQNO_OF, SIZE_OF, VBUCKET_OF, Event, HistoryPlace, Position, Vbucket, parse_log
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop

CLOSED, TOO_SLOW, BACKFILL_FAILED, FILTER_EMPTY, LOST_PRIVILEGES = 1, 4, 5, 7, 8
DISCONNECTED, LOST = 3, -1
PAUSED = frozenset((DISCONNECTED, TOO_SLOW, BACKFILL_FAILED, FILTER_EMPTY, LOST))
"""A stream that ended for one of these reasons is reopened after a growing pause."""
FORESEEN = PAUSED | {0, CLOSED, 2, 6, COLLECTION_DROPPED}
LOST_SECONDS, MAX_LOST_SECONDS = 0.032, 4.0
NEW_MAP_SECONDS = 0.05
REFUSED_FOR_NOW = PASSING | {ResponseStatus.NOT_MY_VBUCKET, ResponseStatus.NO_BUCKET, ResponseStatus.CONFIG_ONLY}
UNKNOWN = frozenset((ResponseStatus.UNKNOWN_COLLECTION, ResponseStatus.UNKNOWN_SCOPE))
MAX_REFUSED_SECONDS = 300.0
"""The client retries for this long while a server refuses a stream for a temporary reason."""
OWN_WINDOW_BYTES = 20 << 20
"""The flow control's buffer if none is configured: without it, a server's unread events would fill the memory."""

_log = get_logger()


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of the streams of a bucket. `buffer_bytes` is the flow control's buffer of each connection, 0 for our own
    size; `polling_seconds` is the interval at which nodes are polled for persistence, 0 for never."""

    selection: Selection = field(default_factory=Selection)
    no_value: bool = False
    xattrs: bool = False
    buffer_bytes: int = 16 << 20
    polling_seconds: float = 0.1

    @property
    def flags(self) -> int:
        """The flags of DCP_OPEN."""
        return PRODUCER | (NO_VALUE if self.no_value else 0) | (XATTRS if self.xattrs else 0)

    @property
    def window(self) -> int:
        """The bytes that a server may send on a connection before they are taken."""
        return self.buffer_bytes or OWN_WINDOW_BYTES


class VbucketChanges:
    """The changes of some vbuckets, in one event loop. `arrived` is called when `take` has something, or raises."""

    def __init__(self, cluster: BucketCluster, options: StreamOptions, arrived: Callable[[], None]) -> None:
        self.rollbacks = 0
        """How often a server took history back."""
        self.taken_back = 0
        """The highest possible number of already taken changes in that history."""
        self._cluster, self._options, self._arrived = cluster, options, arrived
        self._manifest = CollectionManifest(selection=options.selection)
        self._nodes = NodeConnections(cluster, self._manifest, self, window=options.window, flags=options.flags)
        self._problems: dict[int, str] = {}
        self._widened = True
        self._dropped: list[Collection] = []
        self._vbuckets: dict[int, Vbucket] = {}
        self._held = HeldVbuckets(
            options.polling_seconds, self._copies, self._sender, self._nodes.connect, self._release
        )
        self._given: dict[int, tuple[int, HistoryPlace]] = {}
        self._taken: dict[int, int] = {}
        self._streamed: set[int] = set()
        self._ended: dict[int, tuple[Connection, asyncio.Future[int]]] = {}
        self._queue: deque[tuple[Connection, list[Event]]] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: CouchbaseError | AwayError | None = None
        self._losses = 0

    async def start(self, positions: Mapping[int, Position | None]) -> dict[int, Position]:
        """Follows these vbuckets, each from its position (None: from its last change on). The map must be known.

        Returns the position from which each begins. Raises CouchbaseError, AwayError.
        """
        new = [vbucket for vbucket, position in positions.items() if position is None]
        highest = await self._cluster.all_high_seqnos(new)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._nodes.keep_map(lambda: bool(self._problems)))]
        self._tasks.append(loop.create_task(self._nodes.leave_gone()))
        logs = await self._nodes.histories(positions, self._problems)
        for number, position in positions.items():
            vbucket = self._vbuckets[number] = Vbucket(number)
            log = logs[number]
            if position is None:
                seqno = highest[number]
                position = Position(seqno, HistoryPlace(log[0].vbuuid if log else 0, seqno, seqno))  # noqa: PLW2901
            vbucket.start(position, log)
            self._given[number] = vbucket.seqno, vbucket.place
            self._taken[number] = vbucket.seqno
        begins = {number: Position(vbucket.seqno, vbucket.place) for number, vbucket in self._vbuckets.items()}
        self._tasks += [loop.create_task(self._follow(vbucket)) for vbucket in self._vbuckets.values()]
        return begins

    def take(self, most: int) -> list[Event]:
        """Returns about `most` received events, those of a vbucket in order; none if none have come. Acknowledges them.
        Raises CouchbaseError once a vbucket cannot be read any more, AwayError if that may pass."""
        taken: list[Event] = []
        while self._queue and len(taken) < most:
            connection, events = self._queue[0]
            room = most - len(taken)
            if len(events) <= room:
                self._queue.popleft()
                part = events
            else:
                part, self._queue[0] = events[:room], (connection, events[room:])
            taken += part
            self._taken.update(zip(map(VBUCKET_OF, part), map(SEQNO_OF, part), strict=True))
            connection.acknowledge(sum(map(SIZE_OF, part)))
        if not taken and self._failure is not None:
            raise self._failure
        return taken

    @property
    def problem(self) -> str:
        """The reason why some vbucket cannot be read now; empty if all can."""
        return next(iter(list(self._problems.values())), "")  # list() first: the loop may run in another thread

    def resting(self) -> dict[int, tuple[int, int]] | None:
        """Returns each vbucket's last change and branch if all announced changes are taken; None while there are more,
        or while some vbucket cannot be read."""
        if self._queue or self.problem or self.left() != 0:
            return None
        return {number: (seqno, self._vbuckets[number].place.vbuuid) for number, seqno in self._taken.items()}

    def left(self) -> int | None:
        """Returns about how many announced changes are not taken; None while some stream has not been open yet."""
        if len(self._streamed) < len(self._vbuckets):
            return None
        return sum(vbucket.announced_to - self._taken.get(number, 0) for number, vbucket in self._vbuckets.items())

    @property
    def waiting(self) -> bool:
        """Whether `take` has something."""
        return bool(self._queue)

    async def close(self) -> None:
        """Ends all streams and connections."""
        for task in self._tasks:
            task.cancel()
        self._held.close()
        self._nodes.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def events(self, connection: Connection, events: list[Event]) -> None:
        """Called by a connection."""
        if not self._options.polling_seconds:
            self._queue.append((connection, events))
            self._arrived()
            return
        for event in events:
            self._held.add(event)

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """Called by a connection."""
        with contextlib.suppress(CouchbaseError):
            self._cluster.take_map(value, connection.address)

    def stream_ended(self, connection: Connection, vbucket: int, reason: int) -> None:
        """Called by a connection."""
        ended = self._ended.get(vbucket)
        if ended is not None and ended[0] is connection and not ended[1].done():
            ended[1].set_result(reason)

    def lost(self, connection: Connection, reason: str) -> None:
        """Called by a connection."""
        self._losses += 1
        _log.warning("couchbase_connection_lost", node=connection.where, error=reason, times=self._losses)
        self._nodes.forget(connection)
        for number, (at, of) in self._ended.items():
            if at is connection and not of.done():
                self._problems[number] = f"{connection.where}: {reason}"
                of.set_result(LOST)

    async def _follow(self, vbucket: Vbucket) -> None:
        again, lost = Backoff(AGAIN_SECONDS, MAX_AGAIN_SECONDS), Backoff(LOST_SECONDS, MAX_LOST_SECONDS)
        refused, loop, number = 0, asyncio.get_running_loop(), vbucket.number
        since: tuple[bool, float] | None = None  # consecutive refusals of one kind
        try:
            while True:
                changed = self._cluster.changed
                try:
                    opened = await self._ask(vbucket, changed)
                except AwayError as error:
                    self._problems[number], since = str(error), None
                    await wait_or_stop(changed, again.next())
                    continue
                if opened is None:
                    since = None
                    continue
                connection, answer = opened
                if answer.status in (ResponseStatus.SUCCESS, ResponseStatus.KEY_EXISTS):
                    self._problems.pop(number, None)
                    refused, since = 0, None
                    self._streamed.add(number)
                    again.reset()
                    begun = loop.time()
                    reason = await self._until_end(connection, vbucket)
                    if loop.time() - begun >= MAX_AGAIN_SECONDS:
                        lost.reset()
                    if reason in PAUSED:
                        await asyncio.sleep(lost.next())
                    continue
                connection.forget(number)
                if answer.status == ResponseStatus.ROLLBACK:
                    since = None
                    self._roll_back(vbucket, int.from_bytes(answer.value[:8]))
                elif answer.status == ResponseStatus.RANGE_ERROR:
                    refused, since = refused + 1, None
                    await self._out_of_range(connection, vbucket, refused)
                else:
                    kind = answer.status in UNKNOWN
                    since = since if since is not None and since[0] == kind else (kind, loop.time())
                    passed = loop.time() - since[1]
                    await self._refused(connection, vbucket, answer, changed=changed, again=again, seconds=passed)
        except asyncio.CancelledError:
            raise
        except (CouchbaseError, AwayError) as error:
            self._fail(error)
        except Exception as error:
            self._fail(CouchbaseError(f"vbucket {number} cannot be read: {error!r}"))

    def _is_gone(self) -> bool:
        """Returns whether all selected collections existed and are gone now."""
        return bool(self._streamed) and self._options.selection.is_gone(self._manifest)

    async def _ask(self, vbucket: Vbucket, changed: asyncio.Event) -> tuple[Connection, Frame] | None:
        """Requests a stream; None, after a pause, if there is nothing to request. Raises AwayError, CouchbaseError."""
        number = vbucket.number
        if self._is_gone():
            self._problems[number] = f"vbucket {number}: the requested collections are gone"
            await wait_or_stop(changed, MAX_AGAIN_SECONDS)
            await self._nodes.learn_manifest(self._vbuckets)
            return None
        connection = await self._nodes.active(number)
        if self._is_gone():  # the new connection's manifest shows it
            return None
        return connection, await self._ask_stream(connection, vbucket)

    async def _ask_stream(self, connection: Connection, vbucket: Vbucket) -> Frame:
        current = self._cluster.map
        ignore = current is not None and "dcp.IgnorePurgedTombstones" in current.capabilities
        value = b""
        if Feature.COLLECTIONS in connection.features:
            value = self._asked(vbucket)
        elif not self._options.selection.is_all:
            raise CouchbaseError(f"{connection.where} knows no scopes and collections: it is older than Couchbase 7.0")

        def opened(answer: Frame) -> None:
            if answer.status == ResponseStatus.SUCCESS:
                vbucket.opened(parse_log(answer.value))

        ended = asyncio.get_running_loop().create_future()
        self._ended[vbucket.number] = connection, ended
        connection.follow(vbucket)
        return await connection.request(
            Opcode.STREAM_REQUEST,
            vbucket=vbucket.number,
            extras=vbucket.request(ignore_purged=ignore),
            value=value,
            at_once=opened,
        )

    def _asked(self, vbucket: Vbucket) -> bytes:
        """Returns a stream request's JSON. Collections that existed once and are gone raise nothing."""
        selection, running = self._options.selection, bool(self._streamed)
        dropped = selection.missing(self._manifest) if running else []
        if dropped and dropped != self._dropped:
            names = ", ".join(map(str, dropped))
            _log.warning("couchbase_collections_dropped", collections=names, note="the others are read on")
        self._dropped = dropped
        value = selection.value(self._manifest, vbucket.place.manifest_uid, widened=self._widened if running else None)
        vbucket.asked = frozenset(selection.ids(self._manifest) if "collections" in value else ())
        return json.dumps(value, separators=(",", ":")).encode()

    async def _until_end(self, connection: Connection, vbucket: Vbucket) -> int:
        """Waits until the vbucket's stream has ended and another one may be opened. Returns the reason for the end."""
        changed = self._cluster.changed
        reason = await self._ended[vbucket.number][1]
        connection.forget(vbucket.number)
        self._take_back_held(vbucket)
        if reason == LOST_PRIVILEGES:
            raise CouchbaseError(f"user {self._cluster.access.user!r} may no longer read all requested collections")
        if reason not in FORESEEN:
            _log.warning("couchbase_stream_ended", node=connection.where, vbucket=vbucket.number, reason=reason)
        if reason == COLLECTION_DROPPED:
            await connection.close_stream(vbucket.number)
        elif reason == FILTER_EMPTY:
            await self._nodes.learn_manifest(self._vbuckets)
        elif reason != CLOSED and reason not in PAUSED:
            await wait_or_stop(changed, NEW_MAP_SECONDS)
        return reason

    async def _refused(
        self, connection: Connection, vbucket: Vbucket, answer: Frame, *, changed: asyncio.Event, again: Backoff,
        seconds: float,
    ) -> None:  # fmt: skip
        """Waits until another try makes sense. Raises CouchbaseError if none does, or if collections stay unknown;
        AwayError if a temporary refusal lasts too long. `seconds` is the duration of the refusals so far."""
        text = f"{connection.where} opens no stream of vbucket {vbucket.number}: {status_text(answer)}"
        self._problems[vbucket.number] = text
        if answer.status in UNKNOWN:
            if seconds >= self._cluster.access.bootstrap_seconds:
                raise CouchbaseError(f"{text}, for {seconds:.0f} s")
            await self._nodes.learn_manifest(self._vbuckets)
            await wait_or_stop(changed, again.next())
        elif answer.status == ResponseStatus.NO_ACCESS and self._dropped and not vbucket.asked:
            self._widened = False  # a user who may read a few collections may not read all
        elif answer.status == ResponseStatus.NO_ACCESS:
            raise no_reader(self._cluster.access)
        elif answer.status not in REFUSED_FOR_NOW:
            raise CouchbaseError(text)
        elif seconds >= MAX_REFUSED_SECONDS:
            raise AwayError(f"{text}, for {seconds:.0f} s")
        elif answer.status != ResponseStatus.NOT_MY_VBUCKET:
            await wait_or_stop(changed, again.next())
        else:
            if not self._cluster.take_map(answer.value, connection.address):
                await wait_or_stop(changed, AGAIN_SECONDS)
            again.reset()

    async def _out_of_range(self, connection: Connection, vbucket: Vbucket, refused: int) -> None:
        if refused >= 2:
            _log.error(
                "couchbase_range_refused", vbucket=vbucket.number, seqno=vbucket.seqno, note="read from its begin"
            )
            self._roll_back(vbucket, 0)
            return
        with contextlib.suppress(AwayError, RefusedError):
            vbucket.log = await failover_log(connection, vbucket.number)
            highest = await self._cluster.high_seqnos([vbucket.number])
            if highest.get(vbucket.number, vbucket.seqno) < vbucket.seqno:
                self._roll_back(vbucket, highest[vbucket.number])

    def _roll_back(self, vbucket: Vbucket, seqno: int) -> None:
        self.rollbacks += 1
        taken = self._taken[vbucket.number]
        _log.warning(
            "couchbase_rollback", vbucket=vbucket.number, to=seqno, read=vbucket.seqno, taken=taken,
            note="the server's history changed; changes behind this number are read again",
        )  # fmt: skip
        self._held.drop(vbucket.number, seqno)
        for index, (connection, events) in enumerate(self._queue):
            remaining = [event for event in events if event.vbucket != vbucket.number or event.seqno <= seqno]
            if len(remaining) < len(events):
                connection.acknowledge(sum(event.size for event in events) - sum(event.size for event in remaining))
                self._queue[index] = connection, remaining
        vbucket.rolled_back(seqno)
        self._given[vbucket.number] = vbucket.seqno, vbucket.place
        self.taken_back += max(0, taken - seqno)
        self._taken[vbucket.number] = min(taken, seqno)

    def _release(self, events: list[Event]) -> None:
        last = events[-1]
        connection, _ = self._ended[last.vbucket]
        self._given[last.vbucket] = last.seqno, last.place
        self._queue.append((connection, events))
        self._arrived()

    def _take_back_held(self, vbucket: Vbucket) -> None:
        """Rewinds to before the events that were not on disk when the stream ended: the server sends them again."""
        if dropped := self._held.drop(vbucket.number):
            vbucket.seqno, vbucket.place = self._given[vbucket.number]
            vbucket.pending = None
            connection, _ = self._ended[vbucket.number]
            connection.acknowledge(dropped)

    def _copies(self, vbucket: int) -> list[NodeAddress]:
        current = self._cluster.map
        return [] if current is None else current.copies(vbucket)

    def _sender(self, vbucket: int) -> NodeAddress:
        return self._ended[vbucket][0].address

    def _fail(self, error: CouchbaseError | AwayError) -> None:
        if self._failure is None:
            self._failure = error
        self._arrived()
