"""Watches where partitions end, as leaders answer once they have unread records: one Fetch under way at each.

A broker answers a Fetch when there is data after one of its positions, and else after its longest wait; in a fetch
session (https://cwiki.apache.org/confluence/display/KAFKA/KIP-227) neither side sends unchanged positions. So watching
thousands of partitions costs next to nothing, and new data is known at once. At most one record batch is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError, NoError, for_code

from keelman.kafka.connections import answer_of
from keelman.kafka.error_codes import name_of, passes
from keelman.kafka.fetching.fetch_wire import FetchedPart
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.fetching.session import FetchSession
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.client import LeaderClient
from keelman.kafka.leaders.metadata import NOBODY, Part
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import Siblings, wait_or_stop

REFRESH_SECONDS = 10.0
EARLY_SECONDS = 0.1  # by which a timer may be before its counterpart
RETRY_SECONDS = 0.25
CALM_SECONDS = 1.0  # a leader that is lost after such a time without a loss is looked for at once
MIN_WAIT_MS, MAX_WAIT_MS = 250, 1_000  # newly watched partitions wait for the answer that is under way
KEPT_SECONDS = 10.0  # for which unused connections are kept
ANSWER_SECONDS = 5.0
PAUSE_SECONDS = 0.1  # at least, from one request to the next
SMALL = FetchSettings(answer_bytes=1, partition_bytes=1)


@dataclass(slots=True)
class Ends:
    """One answer: the changed ends of partitions, the last stable offsets where records are read
    committed. `gone` are unreadable partitions: missing, denied to this client, or shorter than the position."""

    offsets: dict[Part, int] = field(default_factory=dict)
    gone: dict[Part, str] = field(default_factory=dict)


class EndWatch:
    """Opened with `open`, driven by `run`; `look` notes that other partitions are wanted. Used in one loop."""

    def __init__(
        self,
        client: LeaderClient,
        positions: Mapping[Part, int],
        on_ends: Callable[[Ends], None],
        *,
        read_committed: bool,
    ) -> None:
        self._client = client
        self._wanted = positions
        self._on_ends = on_ends
        self._isolation = int(read_committed)
        self._home: dict[Part, int] = {}
        self._led: dict[int, dict[Part, int]] = {}  # each leader's partitions with their leader epochs
        self._ids: dict[str, str] = {}
        self._topics: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self.refresh_seconds = REFRESH_SECONDS
        """How old metadata may be; may change, with a `look`."""
        self._lost_at = float("-inf")
        client.cluster.add_listener(self._learned)
        self.refreshed = float("-inf")
        """When the metadata was last requested: a new value may mean a new number of partitions."""

    @staticmethod
    @asynccontextmanager
    async def open(
        properties: Mapping[str, str], positions: Mapping[Part, int], on_ends: Callable[[Ends], None], *, client_id: str
    ) -> AsyncIterator[EndWatch]:
        """`positions` has the position of each partition, and may change; `on_ends` gets each answer, also an empty
        one.

        `properties` are Java's; `isolation.level` determines which end is meant. Raises InvalidArgument.
        """
        read_committed = reads_committed(properties)
        wait_ms = MAX_WAIT_MS + int(ANSWER_SECONDS * 1000)
        client = LeaderClient(properties, client_id=client_id, request_timeout_ms=wait_ms)
        try:
            yield EndWatch(client, positions, on_ends, read_committed=read_committed)
        finally:
            await client.close()

    def look(self) -> None:
        """Notes that `positions` have changed."""
        self._changed.set()

    def partitions_of(self, topic: str) -> int:
        """Returns the topic's number of partitions by the newest metadata, which may be old; 0 when not known."""
        return len(self._client.cluster.partitions_for_topic(topic) or ())

    async def run(self) -> None:
        """Runs until no partition has been wanted for a while.

        Raises Unavailable when a broker does not answer, Unauthenticated when none accepts the client.
        """
        try:
            await self._client.bootstrap()
            async with Siblings() as leaders:
                while self._wanted or await self._other(KEPT_SECONDS):
                    self._changed.clear()
                    await self._know()
                    self._place(leaders)
                    homeless = not self._wanted.keys() <= self._home.keys()
                    before = self._lost_at
                    await self._other(RETRY_SECONDS if homeless else self.refresh_seconds)
                    if self._lost_at == before or self._lost_at - before < CALM_SECONDS:
                        await asyncio.sleep(RETRY_SECONDS)  # many that park together are one change
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unavailable(f"no broker reports where partitions end: {error!r}") from None

    async def _other(self, seconds: float) -> bool:
        """Waits at most `seconds` for a change of the positions; returns whether any partition is wanted."""
        await wait_or_stop(self._changed, seconds)
        return bool(self._wanted)

    async def _know(self) -> None:
        topics = frozenset(topic for topic, _ in self._wanted)
        now = asyncio.get_running_loop().time()
        if topics != self._topics:
            self._topics = topics
            topic_infos = await self._client.set_topics(list(topics))
        elif now - self.refreshed > self.refresh_seconds - EARLY_SECONDS:
            topic_infos = await self._client.force_metadata_update()
        else:
            return
        if not topic_infos:
            raise KafkaError("no broker answers")
        self.refreshed = now

    def _place(self, leaders: Siblings) -> None:
        """Gives partitions without a leader to their leaders."""
        cluster, gone = self._client.cluster, Ends()
        for part in [part for part in self._wanted if part not in self._home]:
            if cluster.partitions_for_topic(part[0]) is None:
                gone.gone[part] = "UNKNOWN_TOPIC_OR_PARTITION"
                continue
            leader = self._client.leader_of(part) or NOBODY
            if leader.node == -1:
                self.refreshed = float("-inf")
                continue
            node = self._home[part] = leader.node
            if node not in self._led:
                self._led[node] = {}
                leaders.start(self._follow(node), name=f"ends of broker {node}")
            self._led[node][part] = leader.epoch
        self._on_ends(gone)

    def _learned(self, _cluster: object) -> None:
        """Handles a broker's report of the leaders: leaves a broker that leads no longer, even while
        it holds a request, and reports a topic that was created again as gone."""
        for part, node in list(self._home.items()):
            leader = self._client.leader_of(part) or NOBODY
            if leader.node not in (-1, node) or leader.epoch != self._led[node][part]:
                self._leave([part])
                self._changed.set()
        gone = Ends()
        for topic in self._topics:
            now = self._client.leaders.topic_id(topic)
            if now and self._ids.setdefault(topic, now) != now:
                self._ids[topic] = now
                gone.gone |= {part: "UNKNOWN_TOPIC_ID" for part in self._wanted if part[0] == topic}
        if gone.gone:
            self._on_ends(gone)

    async def _follow(self, node: int) -> None:
        """Fetches from one broker while it leads any of the partitions."""
        led, session, wait_ms = self._led[node], FetchSession(SMALL, self._isolation), MIN_WAIT_MS
        loop = asyncio.get_running_loop()
        while True:
            self._leave([part for part in led if part not in self._wanted])
            if not led:
                del self._led[node]
                return
            begun, before = loop.time(), len(led)
            positions = {part: (self._wanted[part], epoch) for part, epoch in led.items()}
            answer = await answer_of(self._client, node, session.request(positions, wait_ms))
            answered = session.answered(answer)
            ends = self._ends(
                answered_end
                for answered_end in answered
                if answered_end.part in led and led[answered_end.part] == positions[answered_end.part][1]
            )
            self._on_ends(ends)
            quiet = not (ends.offsets or ends.gone) and len(led) == before
            wait_ms = min(2 * wait_ms, MAX_WAIT_MS) if quiet else MIN_WAIT_MS
            await asyncio.sleep(max(0.0, begun + PAUSE_SECONDS - loop.time()))

    def _ends(self, answered: Iterable[FetchedPart]) -> Ends:
        ends = Ends()
        for answer in answered:
            problem = for_code(answer.code)
            if problem is NoError:
                ends.offsets[answer.part] = answer.last_stable_offset if self._isolation else answer.high_watermark
            elif passes(answer.code):
                self._leave([answer.part])
                self.refreshed, self._lost_at = float("-inf"), asyncio.get_running_loop().time()
                self._changed.set()
            else:
                ends.gone[answer.part] = name_of(answer.code)
        return ends

    def _leave(self, parts: Iterable[Part]) -> None:
        for part in parts:
            del self._led[self._home.pop(part)][part]
