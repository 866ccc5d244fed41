"""Asks the brokers about the topics that a sink reads: their ids, and where leader epochs end in them.

The client library goes on in a topic that was deleted and created again as if it were the one before: at the offset
that it had come to, past all that is written before that, or, where the new topic's leader epochs are lower, not at all
and for ever. Only the topic's id distinguishes the two (KIP-516).
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
from keelman.kafka.fetching.leader_epochs import epoch_ends, metadata_of
from keelman.kafka.fetching.log_bounds import log_bounds
from keelman.kafka.fetching.topic_names import TopicNames, topic_names
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

T = TypeVar("T")

EPOCH_SECONDS = 5.0
TOPICS_SECONDS = 2.0
READ_SECONDS = 5.0
"""So often at least a topic's id is looked at while it is read."""
KEEP_SECONDS = 0.3
"""No longer ago it was looked at when offsets are kept. The client library that meets a topic which is not there waits
for half a second (fetch.error.backoff.ms) before it fetches from the next one of its name."""

_log = get_logger()


class SourceTopics:
    """Asks about the topics of one copy run, whose thread alone uses it; its connections are kept until `close`."""

    def __init__(
        self, properties: Mapping[str, str], beat: Callable[[], None], *, read_committed: bool = False
    ) -> None:
        """`properties` of the cluster are Java's. With `read_committed` partitions end where the first transaction is
        open."""
        self._properties, self._beat = properties, beat
        self._isolation = int(read_committed)
        self._stack = AsyncExitStack()
        self._client: Client | None = None
        self._ids: dict[str, str] = {}
        self._looked_at = 0.0
        self._changed = ""
        self.doubtful = False
        """Whether records were taken since the topics were last known to be the same: they may be of another."""

    def close(self) -> None:
        """Ends the connections."""
        if self._client is not None:
            KAFKA_LOOP.call(self._close_client())

    def begin(self, ids: Mapping[str, str]) -> None:
        """These topics are read from now on; ids that are empty are learned when they are looked at first."""
        self._ids, self._looked_at = dict(ids), time.monotonic()
        self._changed, self.doubtful = "", False

    def go_on(self, ids: Mapping[str, str]) -> None:
        """The same where some of them were read before: what is known of those stays."""
        self._ids = {topic: self._ids.get(topic) or one for topic, one in ids.items()}

    @property
    def known(self) -> Mapping[str, str]:
        """The ids of the topics that are read, as far as they were learned."""
        return {topic: one for topic, one in self._ids.items() if one}

    def taken(self) -> None:
        """Records were read."""
        self.doubtful = True

    def changed(self, seconds: float) -> str:
        """Which topic is another one than at the beginning, and why; empty while there is none. Looks at their ids
        unless that was done so many seconds ago."""
        if self._changed or not self._ids or time.monotonic() - self._looked_at < seconds:
            return self._changed
        answer = self._asked(self._ids_now())
        self._looked_at = time.monotonic()
        if answer is None:
            self._ids = {}
            return ""
        for topic, known in self._ids.items():
            now = answer.get(topic, "")
            if now and known and now != known:
                self._changed = f"topic {topic} was deleted and created again (its id is {now})"
            self._ids[topic] = now or known
        if not self._changed and all(answer.get(topic) for topic in self._ids):
            self.doubtful = False
        return self._changed

    def ids(self, topics: set[str], expected: Mapping[str, str]) -> dict[str, str]:
        """Topic ids by name, without topics that do not exist and brokers that do not report ids.

        A broker that is cut off from its cluster reports the id of before for ever, and ids have no order: where one is
        not the expected one, another broker is asked. Raises Unavailable where they differ, or nobody answers.
        """
        return self._asked(self._agree(topics, expected))

    def absent(self, topics: Collection[str]) -> set[str] | None:
        """Those of these topics that do not exist; none where brokers report no topic ids. None where no broker answers
        soon: that says nothing of them."""
        return self._asked(self._absent(set(topics)))

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where these epochs end; nothing from brokers that do not know. Raises Unavailable where a leader does not: it
        may be one no longer."""
        if not epochs:
            return {}
        return self._asked(self._ends({(one.topic, one.partition): epoch for one, epoch in epochs.items()}))

    def all_names(self) -> TopicNames | None:
        """The names of all topics there are, by a connection of its own, as `bounds`; None where no broker names them
        soon."""
        return self._asked(self._all_names())

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Where these begin and end, without those whose leaders do not answer soon. On the consumer's connections such
        a question waits until a fetch is answered, half a second where nothing is written."""
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
        """Empty where no broker answers soon: what is read comes from one that did. None where they never do."""
        try:
            async with asyncio.timeout(TOPICS_SECONDS):
                return await self._ask_ids(set(self._ids), [])
        except (KeelmanError, TimeoutError) as error:
            _log.info("topic_ids_not_told", error=repr(error))
            await self._close_client()  # what it knows of the brokers may be of before
            return {}

    async def _absent(self, topics: set[str]) -> set[str] | None:
        try:
            async with asyncio.timeout(TOPICS_SECONDS):
                known = await self._ask_ids(topics, [])
        except (KeelmanError, TimeoutError):
            await self._close_client()
            return None
        return set() if known is None else topics - known.keys()

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
                known = await metadata_of(client, {one.topic for one in partitions})
                found = await log_bounds(
                    client, [(*one,) for one in partitions], known.topics, isolation=self._isolation
                )
        except (ClientError, KeelmanError, OSError, TimeoutError) as error:
            _log.info("partition_bounds_not_told", error=repr(error))
            await self._close_client()
            return {}
        return {TopicPartition(*one): bounds for one, bounds in found.items()}

    async def _close_client(self) -> None:
        self._client = None
        await self._stack.aclose()

    async def _agree(self, topics: set[str], expected: Mapping[str, str]) -> dict[str, str]:
        client = await self._open()
        nodes = sorted(broker.nodeId for broker in client.cluster.brokers())
        answer = await self._ask_ids(topics, nodes[:1]) or {}
        if len(nodes) > 1 and any(answer.get(topic, known) != known for topic, known in expected.items()):
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
        return {name: one.id for name, one in answer.topics.items() if one.id}

    async def _ends(self, epochs: Mapping[tuple[str, int], int]) -> dict[TopicPartition, int]:
        try:
            answer = await epoch_ends(await self._open(), epochs, seconds=EPOCH_SECONDS)
        except TooOld as error:
            _log.info("epoch_ends_not_told", error=repr(error))
            return {}
        for (topic, number), end in answer.items():
            if end.code:
                why = f"{name_of(end.code)} where epoch {epochs[topic, number]} ends"
                raise Unavailable(f"partition {number} of topic {topic}: {why}")
        return {TopicPartition(*where): end.offset for where, end in answer.items() if end.offset >= 0}
