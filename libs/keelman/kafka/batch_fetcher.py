"""Fetches partitions as whole record batches, from their leaders, a little ahead of whoever takes them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from aiokafka.errors import BrokerResponseError, KafkaError, NoError, OffsetOutOfRangeError, UnknownError, for_code
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from keelman.kafka.arrivals import Arrivals
from keelman.kafka.clients import Client
from keelman.kafka.connections import answer_of
from keelman.kafka.error_codes import CODES, name_of
from keelman.kafka.fetch_client import FetchSettings
from keelman.kafka.fetch_session import FetchSession
from keelman.kafka.fetched import Fetched, Part, whole_batches
from keelman.runtime.background import Background
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger

EARLIEST, LATEST = -2, -1
Reset: TypeAlias = Literal["earliest", "latest", "none"]

FIRST_RETRY_SECONDS = 0.05
MOST_RETRY_SECONDS = 2.0
MOST_IDLE_WAIT_MS = 2_000
CALM_SECONDS = 10.0
METADATA_SECONDS = 30.0
CLOSE_SECONDS = 2.0

_log = get_logger()


class FetchFailure(Exception):
    """Fetching cannot go on: `code` is Kafka's error code, `name` its name."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name_of(code)


class BatchFetcher:
    """Made, closed and awaited in one loop; `take`, `waiting` and what it tells are for any thread.

    It bootstraps the client that it is given and closes it. One Fetch is under way at each leader, for all of its
    partitions, as long as less is held than the settings allow: so one that is idle never keeps another waiting.
    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[Part, int],
        *,
        read_committed: bool,
        reset: Reset,
        settings: FetchSettings | None = None,
        arrived: Callable[[], None] = lambda: None,
    ) -> None:
        """`positions` are the next offsets to read, EARLIEST or LATEST; `reset` is for those that are not there.

        `arrived` is called in the loop when there is something to take. Begins at once.
        """
        self._client = client
        self._isolation = int(read_committed)
        self._reset = reset
        self._settings = settings or FetchSettings()
        self._arrivals = Arrivals(self._settings.held_bytes, arrived)
        self._loop = asyncio.get_running_loop()
        self._positions = dict(positions)
        self._homeless = set(positions)
        self._must_place = asyncio.Event()
        self._must_place.set()
        self._led: dict[int, dict[Part, None]] = {}
        self._troubles: dict[int | None, str] = {}
        self._told_end: dict[Part, int] = {}
        self._heard: dict[int, float] = {}
        self.heard_at = float("-inf")
        """When the leaders of all partitions had last answered, by the monotonic clock."""
        self.ends: dict[Part, int] = {}
        """The newest known end of each partition: its high watermark or, with read_committed, last stable offset."""
        self._tasks = Background(self._arrivals.fail)
        self._tasks.start(self._place())

    async def next(self, seconds: float) -> list[Fetched]:
        """What has arrived; waits at most that long for something. Raises what `take` raises."""
        await self._arrivals.wait(seconds)
        return self._arrivals.take()

    def take(self) -> list[Fetched]:
        """What has arrived, in order; ends that were reached are told once, without batches.

        Raises FetchFailure, CorruptBatch or another error once fetching has ended for it and all before is taken.
        """
        return self._arrivals.take()

    @property
    def waiting(self) -> bool:
        """Whether there is something to take now, be it an error."""
        return self._arrivals.waiting

    @property
    def trouble(self) -> str:
        """What keeps some partition from being read, empty when nothing does."""
        return next(iter(self._troubles.copy().values()), "")

    async def close(self) -> None:
        """Ends all requests and closes the client."""
        await self._tasks.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._client.close()

    # Which leader has what.

    async def _place(self) -> None:
        """Finds the leaders, at first and whenever partitions have lost theirs."""
        backoff = Backoff(FIRST_RETRY_SECONDS, MOST_RETRY_SECONDS)
        placed_at = float("-inf")
        while True:
            await self._must_place.wait()
            if self._loop.time() - placed_at >= CALM_SECONDS:
                backoff.reset()
            else:
                await asyncio.sleep(backoff.next())
            self._must_place.clear()
            why = await self._learn()
            for one in [] if why else sorted(self._homeless):
                why = self._home(one) or why
            placed_at = self._loop.time()
            if why:
                self._troubles[None] = why
                self._must_place.set()
            else:
                self._troubles = {node: text for node, text in self._troubles.items() if node in self._led}

    async def _learn(self) -> str:
        """Asks for the metadata; why that failed, or empty."""
        topics = {topic for topic, _ in self._positions}
        try:
            async with asyncio.timeout(METADATA_SECONDS):
                if not self._client.cluster.brokers():
                    await self._client.bootstrap()
                self._client.set_topics(topics)
                if await self._client.force_metadata_update():
                    return ""
                # Perhaps all brokers have moved: the first addresses may know them.
                await self._client.bootstrap()
        except (KafkaError, OSError, TimeoutError) as error:
            return _text(error)
        return "no broker tells about topics"

    def _home(self, one: Part) -> str:
        """Gives a partition to its leader; why that failed, or empty."""
        cluster = self._client.cluster
        if one[0] in cluster.unauthorized_topics:
            raise FetchFailure(CODES["TOPIC_AUTHORIZATION_FAILED"], f"topic {one[0]} may not be read")
        leader = cluster.leader_for_partition(TopicPartition(*one))
        if leader is None:
            return f"there is no partition {one[1]} of topic {one[0]}"
        if leader < 0:
            return f"partition {one[1]} of topic {one[0]} has no leader"
        self._homeless.discard(one)
        self._lead(leader, one)
        return ""

    def _lead(self, node: int, one: Part) -> None:
        if node not in self._led:
            self._led[node] = {}
            self._tasks.start(self._follow(node))
        self._led[node][one] = None

    def _unhome(self, node: int, parts: list[Part]) -> None:
        for one in parts:
            del self._led[node][one]
        self._homeless.update(parts)
        self._must_place.set()

    # What one leader gives.

    async def _follow(self, node: int) -> None:
        """Fetches from one broker for as long as it has any of the partitions."""
        led, least = self._led[node], self._settings.max_wait_ms
        session = FetchSession(self._settings, self._isolation)
        wait_ms = 0  # the first answer tells the ends at once
        while led:
            await self._arrivals.room()
            try:
                await self._resolve(node)
                brought = await self._fetch(node, session, wait_ms)
            except (KafkaError, OSError, TimeoutError) as error:
                self._troubles[node] = _text(error)
                self._unhome(node, list(led))
                break
            self._troubles.pop(node, None)
            self._heard[node] = self._loop.time()
            if not self._homeless:
                self.heard_at = min(self._heard.get(leader, self.heard_at) for leader in self._led)
            grown = max(least, min(2 * wait_ms, MOST_IDLE_WAIT_MS))
            wait_ms = grown if self._settings.grows and not brought else least
        del self._led[node]

    async def _resolve(self, node: int) -> None:
        """Asks where the partitions begin or end that are to be read from there."""
        topics: dict[str, list[tuple[int, int]]] = {}
        for topic, number in self._led[node]:
            at = self._positions[topic, number]
            if at < 0:
                topics.setdefault(topic, []).append((number, at))
        if not topics:
            return
        answer = await self._client.send(node, OffsetRequest(-1, self._isolation, list(topics.items())))
        for topic, told in answer.topics:
            for number, code, _time, offset in told:
                if self._good(node, (topic, number), code):
                    self._positions[topic, number] = offset

    async def _fetch(self, node: int, session: FetchSession, wait_ms: int) -> bool:
        """One Fetch; whether it brought records."""
        led = self._led[node]
        # What brought something last comes last: an answer that is full before its end begins with others.
        wanted = {one: self._positions[one] for one in led if self._positions[one] >= 0}
        if not wanted:
            return False
        brought = False
        for told in session.answered(await answer_of(self._client, node, session.request(wanted, wait_ms))):
            one = told.part
            if not self._reaches(node, one, told.code):
                continue
            self._take_in(
                one, told.data, told.aborted, told.last_stable_offset if self._isolation else told.high_watermark
            )
            if told.data:
                brought = True
                led.pop(one)
                led[one] = None
            elif told.near not in (-1, node):
                del led[one]
                self._lead(told.near, one)
        return brought

    def _reaches(self, node: int, one: Part, code: int) -> bool:
        """Whether the answer for a partition says what is at its position."""
        if for_code(code) is not OffsetOutOfRangeError:
            return self._good(node, one, code)
        if self._client.cluster.leader_for_partition(TopicPartition(*one)) == node:
            self._reset_position(one)
        else:
            self._unhome(node, [one])  # a follower may be behind
        return False

    def _take_in(self, one: Part, data: bytes, aborted: list[tuple[int, int]], end: int) -> None:
        position = self._positions[one]
        batches, behind = whole_batches(
            data, position, aborted, read_committed=bool(self._isolation), check_crcs=self._settings.check_crcs
        )
        self._positions[one], self.ends[one] = behind, end
        at_end = behind >= end
        if behind == position and not (at_end and self._told_end.get(one) != behind):
            return
        if at_end:
            self._told_end[one] = behind
        size = sum(header.size for header, _ in batches)
        self._arrivals.put(Fetched(*one, batches, position, behind, end, size))

    def _reset_position(self, one: Part) -> None:
        at, self._told_end[one] = self._positions[one], -1
        if self._reset == "none":
            text = f"offset {at} of partition {one[1]} of topic {one[0]} is not there"
            raise FetchFailure(CODES["OFFSET_OUT_OF_RANGE"], text)
        _log.warning("offset_not_there", topic=one[0], partition=one[1], offset=at, goes_on=self._reset)
        self._positions[one] = EARLIEST if self._reset == "earliest" else LATEST

    def _good(self, node: int, one: Part, code: int) -> bool:
        """Whether a partition's answer is one; asks for its leader anew if that may help. Raises FetchFailure."""
        problem: type[BrokerResponseError] = for_code(code)
        if problem is NoError:
            return True
        text = f"partition {one[1]} of topic {one[0]}: {name_of(code)}"
        if not (problem.retriable or problem.invalid_metadata or problem is UnknownError or code in _PASSING):
            raise FetchFailure(code, text)
        self._troubles[None] = text
        self._unhome(node, [one])
        return False


# A new leader says otherwise.
_PASSING = frozenset(
    CODES[name]
    for name in ("REPLICA_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE")
)


def _text(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
