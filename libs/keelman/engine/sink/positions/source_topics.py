"""Queries the brokers about the topics that a sink reads: their ids, and the ends of leader epochs in them.

The client library continues in a topic that was deleted and created again as if it were the former topic: at its last
offset, past all records before that, or, if the new topic's leader epochs are lower, it never reads again.
Only the topic's id distinguishes the two (KIP-516).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from keelman.connect.records import TopicPartition
from keelman.kafka.clients import Client, ClientError, TooOld, low_level_client
from keelman.kafka.error_codes import name_of
from keelman.kafka.fetching.epoch_ends import epoch_ends
from keelman.kafka.fetching.log_bounds import log_bounds
from keelman.kafka.leaders.metadata import metadata_of
from keelman.kafka.leaders.topic_names import TopicNames, topic_names
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

T = TypeVar("T")

EPOCH_SECONDS = 5.0
TOPICS_SECONDS = 2.0
READ_SECONDS = 5.0
"""The longest time between two checks of a topic's id while it is read."""
KEEP_SECONDS = 0.3
"""The greatest age of the last check when offsets are kept. After a missing topic the client library waits
for half a second (fetch.error.backoff.ms) before it fetches from the next topic of that name."""

_log = get_logger()


class SourceTopics:
    """Queries the topics of one copy run, whose thread alone uses it; it keeps its connections until `close`."""

    def __init__(
        self, properties: Mapping[str, str], beat: Callable[[], None], *, read_committed: bool = False
    ) -> None:
        """`properties` of the cluster are named as in Java. With `read_committed` partitions end at the first open
        transaction."""
        self._properties, self._beat = properties, beat
        self._isolation = int(read_committed)
        self._stack = AsyncExitStack()
        self._client: Client | None = None
        self._ids: dict[str, str] = {}
        self._looked_at = 0.0
        self._changed = ""
        self.doubtful = False
        """Whether records were taken since the last check of the ids: they may be of another topic."""

    def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            KAFKA_LOOP.call(self._close_client())

    def begin(self, ids: Mapping[str, str]) -> None:
        """Begins with these topics; the first check learns ids that are empty."""
        self._ids, self._looked_at = dict(ids), time.monotonic()
        self._changed, self.doubtful = "", False

    def go_on(self, ids: Mapping[str, str]) -> None:
        """Continues with these topics, and keeps the known ids of those that were read before."""
        self._ids = {topic: self._ids.get(topic) or former for topic, former in ids.items()}

    @property
    def known(self) -> Mapping[str, str]:
        """The known ids of the topics that are read."""
        return {topic: identifier for topic, identifier in self._ids.items() if identifier}

    def taken(self) -> None:
        """Notes that records were read."""
        self.doubtful = True

    def changed(self, seconds: float) -> str:
        """Returns a text that names a topic that was recreated since the beginning, and the reason; empty without one.
        Checks the ids unless the last check is less than `seconds` ago."""
        if self._changed or not self._ids or time.monotonic() - self._looked_at < seconds:
            return self._changed
        answer = self._asked(self._ids_now())
        self._looked_at = time.monotonic()
        if answer is None:
            self._ids = {}
            return ""
        for topic, former in self._ids.items():
            now = answer.get(topic, "")
            if now and former and now != former:
                self._changed = f"topic {topic} was deleted and created again (its id is {now})"
            self._ids[topic] = now or former
        if not self._changed and all(answer.get(topic) for topic in self._ids):
            self.doubtful = False
        return self._changed

    def ids(self, topics: set[str], expected: Mapping[str, str]) -> dict[str, str]:
        """Returns topic ids by name, without missing topics; none from brokers that do not report ids.

        A broker that is cut off from its cluster reports the former id for ever, and ids have no order: if an id is
        not as expected, another broker is queried. Raises Unavailable if the brokers differ, or none answers.
        """
        return self._asked(self._agree(topics, expected))

    def absent(self, topics: Collection[str]) -> set[str] | None:
        """Returns the topics that do not exist; the empty set if brokers report no topic ids, None if no broker answers
        soon, which proves nothing."""
        return self._asked(self._absent(set(topics)))

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Returns the ends of these epochs; nothing if the brokers are too old to tell. Raises Unavailable if a leader
        reports an error: it may not lead any more."""
        if not epochs:
            return {}
        return self._asked(
            self._ends({(partition.topic, partition.partition): epoch for partition, epoch in epochs.items()})
        )

    def all_names(self) -> TopicNames | None:
        """Returns the names of all topics, over a separate connection as `bounds`; None if no broker answers soon."""
        return self._asked(self._all_names())

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Returns begin and end of these partitions, without those whose leaders do not answer soon. On the consumer's
        connections such a query waits until a fetch is answered, half a second if there are no new records."""
        return self._asked(self._bounds(partitions)) if partitions else {}

    def _asked(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return KAFKA_LOOP.call(work, self._beat)
        except Unavailable:
            self.close()
            raise

    async def _open(self) -> Client:
        if self._client is None:
            self._stack = AsyncExitStack()
            opening = low_level_client(self._properties, client_id="connector-source-topics", timeout_ms=10_000)
            self._client = await self._stack.enter_async_context(opening)
        return self._client

    async def _ids_now(self) -> dict[str, str] | None:
        """Returns the present ids; empty if no broker answers soon, since a broker serves the reads; None if brokers
        never report ids."""
        try:
            async with asyncio.timeout(TOPICS_SECONDS):
                return await self._ask_ids(set(self._ids), [])
        except (KeelmanError, TimeoutError) as error:
            _log.info("topic_ids_not_told", error=repr(error))
            await self._close_client()  # its metadata of the brokers may be outdated
            return {}

    async def _absent(self, topics: set[str]) -> set[str] | None:
        try:
            async with asyncio.timeout(TOPICS_SECONDS):
                ids = await self._ask_ids(topics, [])
        except (KeelmanError, TimeoutError):
            await self._close_client()
            return None
        return set() if ids is None else topics - ids.keys()

    async def _all_names(self) -> TopicNames | None:
        try:
            async with asyncio.timeout(TOPICS_SECONDS):
                return await topic_names(await self._open())
        except (ClientError, KeelmanError, OSError, TimeoutError) as error:
            _log.info("topics_not_named", error=repr(error))
            await self._close_client()
            return None

    async def _bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        try:
            async with asyncio.timeout(TOPICS_SECONDS):
                client = await self._open()
                metadata = await metadata_of(client, {partition.topic for partition in partitions})
                bounds_of = await log_bounds(
                    client, [(*partition,) for partition in partitions], metadata.topics, isolation=self._isolation
                )
        except (ClientError, KeelmanError, OSError, TimeoutError) as error:
            _log.info("partition_bounds_not_told", error=repr(error))
            await self._close_client()
            return {}
        return {TopicPartition(*partition): bounds for partition, bounds in bounds_of.items()}

    async def _close_client(self) -> None:
        self._client = None
        await self._stack.aclose()

    async def _agree(self, topics: set[str], expected: Mapping[str, str]) -> dict[str, str]:
        client = await self._open()
        nodes = sorted(broker.nodeId for broker in client.cluster.brokers())
        answer = await self._ask_ids(topics, nodes[:1]) or {}
        if len(nodes) > 1 and any(
            answer.get(topic, identifier) != identifier for topic, identifier in expected.items()
        ):
            again = await self._ask_ids(topics, nodes[1:]) or {}
            if again != answer:
                raise Unavailable(f"brokers report different ids of topics {', '.join(sorted(topics))}")
        return answer

    async def _ask_ids(self, topics: set[str], first: list[int]) -> dict[str, str] | None:
        try:
            answer = await metadata_of(await self._open(), topics, first=first)
        except TooOld as error:
            _log.info("topic_ids_not_told", error=repr(error))
            return None
        except (ClientError, OSError) as error:
            raise Unavailable(f"no broker answers about topics: {error!r}") from None
        return {name: metadata.id for name, metadata in answer.topics.items() if metadata.id}

    async def _ends(self, epochs: Mapping[tuple[str, int], int]) -> dict[TopicPartition, int]:
        try:
            answer = await epoch_ends(await self._open(), epochs, seconds=EPOCH_SECONDS)
        except TooOld as error:
            _log.info("epoch_ends_not_told", error=repr(error))
            return {}
        for (topic, number), end in answer.items():
            if end.code:
                reason = f"{name_of(end.code)} where epoch {epochs[topic, number]} ends"
                raise Unavailable(f"partition {number} of topic {topic}: {reason}")
        return {TopicPartition(*where): end.offset for where, end in answer.items() if end.offset >= 0}
