"""Fetches partitions as whole record batches, from their leaders, a little ahead of their reader."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import product

from aiokafka.errors import KafkaError, OffsetOutOfRangeError, for_code

from keelman.kafka.batches.record_batch import CorruptBatch
from keelman.kafka.error_codes import CODES, name_of, passes
from keelman.kafka.fetching.arrivals import Arrivals
from keelman.kafka.fetching.asking import Asking
from keelman.kafka.fetching.fetch_wire import FetchedPart
from keelman.kafka.fetching.fetched import Fetched, whole_batches
from keelman.kafka.fetching.pauses import Pauses
from keelman.kafka.fetching.position import FetchPosition, made_anew
from keelman.kafka.fetching.position_checks import FetchFailure, PositionChecks, Reset
from keelman.kafka.fetching.session import FetchSession
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.client import LeaderClient, one_line
from keelman.kafka.leaders.metadata import Part
from keelman.runtime.background import Background
from keelman.runtime.backoff import Backoff
from keelman.runtime.supervise import wait_or_stop

FIRST_RETRY_SECONDS = 0.05
MAX_RETRY_SECONDS = 2.0
MAX_IDLE_WAIT_MS = 2_000
CALM_SECONDS = 10.0
REFRESH_SECONDS = 10.0
"""The interval of metadata requests while a leader sends nothing, or does not answer."""
CONFIRM_SECONDS = 0.5
CLOSE_SECONDS = 2.0
NOT_ALLOWED = CODES["TOPIC_AUTHORIZATION_FAILED"]


class BatchFetcher:
    """Made, closed and awaited in one loop; `take`, `waiting` and the properties may be used in any thread.

    Bootstraps the given client and closes it. One Fetch is under way at each leader, for all of its
    partitions, while less is held than the settings allow: so an idle partition never keeps another waiting.
    """

    def __init__(
        self,
        client: LeaderClient,
        positions: Mapping[Part, int | FetchPosition],
        *,
        read_committed: bool,
        reset: Reset,
        settings: FetchSettings | None = None,
        arrived: Callable[[], None] = lambda: None,
        refused: Callable[[Part, FetchFailure], None] | None = None,
    ) -> None:
        """`positions` are the next offsets to read, EARLIEST or LATEST; `reset` applies to missing offsets; "none" also
        applies to truncated logs and recreated topics, which otherwise are read on from where they differ.

        `arrived` is called in the loop when there is something to take, `refused` with a partition that this client may
        not read: it is not fetched until it is added again. Without `refused` that is a failure. Begins at once.
        """
        self._client = client
        self._isolation = int(read_committed)
        self._settings = settings or FetchSettings()
        self.check_crcs = self._settings.check_crcs
        """Whether the checksums of all batches are checked, or only those of skipped batches; may change."""
        self._arrivals = Arrivals(self._settings.held_bytes, arrived)
        self._loop = asyncio.get_running_loop()
        self._positions = {part: FetchPosition(at) if isinstance(at, int) else at for part, at in positions.items()}
        self._checks = PositionChecks(client, self._isolation, reset)
        self._homeless = set(positions)
        self._must_place = asyncio.Event()
        self._must_place.set()
        self._led: dict[int, dict[Part, int]] = {}  # each leader's partitions with their leader epochs
        self._near: dict[Part, float] = {}  # the partitions that are read from a follower, and until when
        self._joined: set[int] = set()  # leaders that were given partitions and have not yet fetched them
        self._retry_ms = MAX_IDLE_WAIT_MS  # how long `_place` waits before its next try
        self._problems: dict[int | None, str] = {}
        self._notified_end: dict[Part, int] = {}
        self._heard = dict.fromkeys(positions, float("-inf"))  # by the monotonic clock
        self._brought: dict[int, float] = {}
        self.ends: dict[Part, int] = {}
        """The newest known end of each partition: its high watermark or, with read_committed, last stable offset."""
        self._records_at = self._loop.time()
        self._unconfirmed = asyncio.Event()
        self.pauses = Pauses(self._settings)
        client.cluster.add_listener(self._learned)
        self._refused = refused
        self._tasks = Background(self._arrivals.fail)
        self._tasks.start(self._place())
        self._tasks.start(self._refresh())

    async def next(self, seconds: float) -> list[Fetched]:
        """Returns the fetched batches; waits at most `seconds` for some. Raises the errors of `take`."""
        await self._arrivals.wait(seconds)
        return self._arrivals.take()

    def take(self) -> list[Fetched]:
        """Returns the fetched batches in order; an end that was reached is returned once, without batches. Raises
        FetchFailure, CorruptBatch or another error once fetching has failed and all earlier batches are taken."""
        return self._arrivals.take()

    @property
    def waiting(self) -> bool:
        """Whether there is something to take now, be it an error."""
        return self._arrivals.waiting

    @property
    def problem(self) -> str:
        """The reason why some partition cannot be read, empty without one."""
        return next(iter(self._problems.copy().values()), "")

    def heard_at(self, topic: str) -> float:
        """Returns when the leaders of all partitions of a topic had last answered for them, by the monotonic clock."""
        return min(at for part, at in self._heard.items() if part[0] == topic)

    def partitions_of(self, topic: str) -> int:
        """Returns a topic's number of partitions, as far as it is known."""
        return len(self._client.cluster.partitions_for_topic(topic) or ())

    def add(self, positions: Mapping[Part, FetchPosition]) -> None:
        """Starts to read these partitions, or those that `leave` returned, from there. Called in the fetcher's loop."""
        self._positions |= positions
        self._heard |= dict.fromkeys(positions, self._loop.time())
        self._notified_end |= dict.fromkeys(positions, -1)
        self._homeless |= positions.keys()
        self._must_place.set()

    def confirmed(self) -> bool:
        """Whether another broker has confirmed since the last records that their leaders still lead: a leader that
        is cut off from its cluster answers that there is nothing. If not, requests metadata: call again."""
        if not self._homeless and self._client.confirmed(self._records_at):
            return True
        self._loop.call_soon_threadsafe(self._unconfirmed.set)
        return False

    async def leave(self, parts: Collection[Part]) -> dict[Part, FetchPosition]:
        """Stops fetching these partitions, whose batches may have arrived; returns their positions. In its loop."""
        for led, part in product(self._led.values(), parts):
            led.pop(part, None)
        self._homeless.difference_update(parts)
        return {part: self._positions[part] for part in parts}

    async def close(self) -> None:
        """Ends all requests and closes the client."""
        self._client.cluster.remove_listener(self._learned)
        await self._tasks.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._client.close()

    async def _place(self) -> None:
        """Finds the leaders, at first and whenever partitions have lost theirs."""
        backoff = Backoff(FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
        placed_at = float("-inf")
        while True:
            await self._must_place.wait()
            if self._loop.time() - placed_at >= CALM_SECONDS:
                backoff.reset()
            else:
                pause = backoff.next()
                self._retry_ms = int(pause * 1000)
                await asyncio.sleep(pause)
            self._must_place.clear()
            problem = await self._client.learn({topic for topic, _ in self._positions})
            for part in [] if problem else sorted(self._homeless):
                problem = self._home(part) or problem
            placed_at = self._loop.time()
            if problem:
                self._problems[None] = problem
                self._must_place.set()
            else:
                self._problems = {node: text for node, text in self._problems.items() if node in self._led}

    def _learned(self, _cluster: object) -> None:
        """Moves partitions to their current leaders after each report of a broker, requested or not, even while their
        former leader still holds a request."""
        moved = [
            (node, part)
            for node, led in self._led.items()
            for part, epoch in led.items()
            if self._moved(node, part, epoch)
        ]
        try:
            for node, part in moved:
                self._rehome(node, part)
        except FetchFailure as error:
            self._arrivals.fail(error)

    def _moved(self, node: int, part: Part, epoch: int) -> bool:
        leader = self._client.leader_of(part)
        if leader is None or leader.node < 0:
            return False
        elsewhere = leader.node != node and self._near.get(part, 0.0) < self._loop.time()
        gone = self._client.cluster.broker_metadata(node) is None
        another = self._is_another(part) or self._client.leaders.disputed(part[0])
        return elsewhere or gone or another or leader.epoch != epoch

    async def _refresh(self) -> None:
        """Requests metadata while a leader sends nothing: it may lead no longer."""
        while True:
            await wait_or_stop(self._unconfirmed, REFRESH_SECONDS)
            now = self._loop.time()
            silent = [
                node for node, led in self._led.items() if now - self._brought.get(node, 0.0) > REFRESH_SECONDS and led
            ]
            if silent or self._unconfirmed.is_set():
                with contextlib.suppress(KafkaError, OSError, TimeoutError):
                    await self._client.force_metadata_update()
                await asyncio.sleep(CONFIRM_SECONDS)
                self._unconfirmed.clear()

    def _is_another(self, part: Part) -> bool:
        return made_anew(self._positions[part], self._client.leaders.topic_id(part[0]))

    def _home(self, part: Part) -> str:
        """Gives a partition to its leader; returns why that failed, or empty."""
        if part[0] in self._client.cluster.unauthorized_topics:
            self._refuse(part, FetchFailure(NOT_ALLOWED, f"topic {part[0]} may not be read"))
            return ""
        leader = self._client.leader_of(part)
        if leader is None:
            return f"no partition {part[1]} of topic {part[0]}"
        if leader.node < 0:
            return f"partition {part[1]} of topic {part[0]} has no leader"
        leaders, another = self._client.leaders, self._is_another(part)
        if leaders.disputed(part[0]) or (another and not leaders.agreed(part[0])):
            return f"topic {part[0]} may have been created again: another broker is queried"
        if another:
            self._checks.restart(part, self._positions[part], leaders.topic_id(part[0]))
            self._notified_end[part] = -1
        self._homeless.discard(part)
        self._near.pop(part, None)
        self._lead(leader.node, part, leader.epoch)
        return ""

    def _refuse(self, part: Part, failure: FetchFailure) -> None:
        if self._refused is None:
            raise failure
        self._homeless.discard(part)
        self._refused(part, failure)

    def _lead(self, node: int, part: Part, epoch: int) -> None:
        if node not in self._led:
            self._led[node] = {}
            self._tasks.start(self._follow(node))
        self._led[node][part] = epoch
        self._joined.add(node)

    def _unhome(self, node: int, parts: Iterable[Part]) -> None:
        for part in parts:
            del self._led[node][part]
            self._homeless.add(part)
        self._must_place.set()

    def _rehome(self, node: int, part: Part) -> None:
        """Moves the partition from this node to its known leader."""
        del self._led[node][part]
        self._homeless.add(part)
        self._records_at = self._loop.time()
        if self._home(part):
            self._must_place.set()

    async def _follow(self, node: int) -> None:
        """Fetches from one broker while it has any of the partitions."""
        with contextlib.closing(Asking(self._client, node, self._unconfirmed.set)) as asking:
            await self._fetch_on(node, asking)

    async def _fetch_on(self, node: int, asking: Asking) -> None:
        led, least = self._led[node], self._settings.max_wait_ms
        session = FetchSession(self._settings, self._isolation)
        idle_ms = 0
        self._brought[node] = self._loop.time()
        while led:
            await self._arrivals.room()
            joined = node in self._joined
            self._joined.discard(node)
            try:
                self._return_from_near(node)
                await self._check(node)
                wait_ms = self._wait_ms(node, idle_ms, joined=joined)
                brought = await self._fetch(node, asking, session, wait_ms)
            except (KafkaError, OSError, TimeoutError) as error:
                self._problems[node] = one_line(error)
                self._unhome(node, list(led))
                break
            self._problems.pop(node, None)
            if brought:
                self._brought[node] = self._records_at = self._loop.time()
                await self.pauses.make_way(brought)
            grown = max(least, min(2 * idle_ms, MAX_IDLE_WAIT_MS))
            idle_ms = grown if self._settings.grows and not brought else least
        del self._led[node]

    def _wait_ms(self, node: int, idle_ms: int, *, joined: bool) -> int:
        """Returns how long the broker may wait for records: a partition that joins meanwhile has to wait as long.

        0 for partitions that joined: their first answer has the ends. While some have no leader, no longer
        than until the next search for it.
        """
        if joined or node in self._joined:
            return 0
        return min(idle_ms, self._retry_ms) if self._homeless else idle_ms

    def _return_from_near(self, node: int) -> None:
        """Moves partitions that are read from a follower back to their leader now and then (KIP-392)."""
        now = self._loop.time()
        for part in [part for part in self._led[node] if self._near.get(part, now) < now]:
            self._rehome(node, part)

    async def _check(self, node: int) -> None:
        led, positions = self._led[node], self._positions
        doubtful = {part: (positions[part], epoch) for part, epoch in led.items() if positions[part].doubtful(epoch)}
        if doubtful:
            problems = await self._checks.check(node, doubtful, lambda part: led.get(part) == doubtful[part][1])
            for part, code in problems.items():
                self._good(node, part, code)

    async def _fetch(self, node: int, asking: Asking, session: FetchSession, wait_ms: int) -> dict[str, int]:
        """Sends one Fetch; returns the bytes of records that it brought, by topic."""
        led = self._led[node]
        # The last to bring records goes last: an answer that is full before its end begins with other partitions.
        sought = {
            part: (at.offset, epoch) for part, epoch in led.items() if not (at := self._positions[part]).doubtful(epoch)
        }
        if not sought:
            return {}
        brought = dict[str, int]()
        answer = await asking.ask(session.request(sought, wait_ms), wait_ms / 1000)
        current = [part for part, (_, epoch) in sought.items() if led.get(part) == epoch]
        heard = dict.fromkeys(current, self._loop.time())
        for fetched in session.answered(answer):
            part = fetched.part
            if (self._positions[part].offset, led.get(part)) != sought.get(part):
                continue  # the partition has moved meanwhile
            if not self._reaches(node, part, fetched.code):
                heard.pop(part, None)
                continue
            self._take_in(fetched, led[part], fetched.last_stable_offset if self._isolation else fetched.high_watermark)
            if fetched.data:
                brought[part[0]] = brought.get(part[0], 0) + len(fetched.data)
                led[part] = led.pop(part)
            elif fetched.near not in (-1, node):
                self._near[part] = self._loop.time() + self._client._metadata_max_age_ms / 1000
                self._lead(fetched.near, part, led.pop(part))
        self._heard.update(heard)
        return brought

    def _reaches(self, node: int, part: Part, code: int) -> bool:
        """Whether the answer for a partition has the data at its position."""
        if for_code(code) is not OffsetOutOfRangeError:
            return self._good(node, part, code)
        if part in self._near:
            self._unhome(node, [part])  # a follower may be behind
        else:
            self._positions[part].missing = True
            self._notified_end[part] = -1
        return False

    def _take_in(self, fetched: FetchedPart, epoch: int, end: int) -> None:
        part, position = fetched.part, self._positions[fetched.part]
        before, epochs = position.offset, list[tuple[int, int]]()
        try:
            batches, behind = whole_batches(
                fetched.data,
                before,
                fetched.aborted,
                read_committed=bool(self._isolation),
                check_crcs=self.check_crcs,
                epochs=epochs,
            )
        except CorruptBatch as error:
            raise CorruptBatch(f"partition {part[1]} of topic {part[0]}: {error.message}") from error
        position.topic_id = position.topic_id or self._client.leaders.topic_id(part[0])
        position.advance(behind, epochs, epoch)
        self.ends[part] = end
        at_end = behind >= end
        if behind == before and not (at_end and self._notified_end.get(part) != behind):
            return
        if at_end:
            self._notified_end[part] = behind
        size = sum(header.size for header, _ in batches)
        self._arrivals.put(Fetched(*part, batches, before, behind, end, size, position.topic_id))

    def _good(self, node: int, part: Part, code: int) -> bool:
        """Whether a partition's answer has no error; looks for its leader again if useful. Raises FetchFailure."""
        if not code:
            return True
        text = f"partition {part[1]} of topic {part[0]}: {name_of(code)}"
        if code == NOT_ALLOWED:
            del self._led[node][part]
            self._refuse(part, FetchFailure(code, text))
            return False
        if not passes(code):
            raise FetchFailure(code, text)
        self._problems[None] = text
        self._unhome(node, [part])
        return False
