"""Where partitions end: ListOffsets for many partitions of one cluster at once, over one client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from keelman.kafka.clients import Client, low_level_client
from keelman.model.errors import Unavailable

LATEST = -1
Part: TypeAlias = tuple[str, int]
"""A topic's name and the number of a partition."""
ASK_SECONDS = 5.0
REFRESH_SECONDS = 10.0


@dataclass(slots=True)
class Ends:
    """One answer. A partition that is in neither map has no leader at this moment, or its leader did not answer.

    `gone` are partitions that the brokers refuse to tell about: the topic is not there, or the client may not see it.
    """

    offsets: dict[Part, int] = field(default_factory=dict)
    gone: dict[Part, str] = field(default_factory=dict)


class EndOffsets:
    """Open it with `opened`; one question at a time."""

    def __init__(self, client: Client, *, read_committed: bool) -> None:
        self._client = client
        self._isolation = 1 if read_committed else 0
        self._topics: frozenset[str] = frozenset()
        self._refreshed = float("-inf")

    @staticmethod
    @asynccontextmanager
    async def opened(properties: Mapping[str, str], *, client_id: str) -> AsyncIterator[EndOffsets]:
        """`properties` are Java's; `isolation.level` says which end is meant. Raises Unavailable, InvalidArgument."""
        read_committed = properties.get("isolation.level", "").strip().lower() == "read_committed"
        async with low_level_client(properties, client_id=client_id, timeout_ms=int(ASK_SECONDS * 1000)) as client:
            yield EndOffsets(client, read_committed=read_committed)

    async def ask(self, partitions: Collection[Part]) -> Ends:
        """One ListOffsets for each leader, side by side. Raises Unavailable when no broker answers."""
        try:
            async with asyncio.timeout(2 * ASK_SECONDS):
                await self._know(frozenset(topic for topic, _ in partitions))
                return await self._ask(partitions)
        except (KafkaError, OSError, TimeoutError) as error:
            self._refreshed = float("-inf")
            raise Unavailable(f"no broker tells where partitions end: {error!r}") from None

    @property
    def refreshed(self) -> float:
        """When the metadata was asked for last: another value, perhaps another number of partitions."""
        return self._refreshed

    def partitions_of(self, topic: str) -> int:
        """How many partitions the topic has by the newest metadata, at most ten seconds old; 0 when not known."""
        return len(self._client.cluster.partitions_for_topic(topic) or ())

    async def _know(self, topics: frozenset[str]) -> None:
        if topics != self._topics:
            self._topics = topics
            known = await self._client.set_topics(list(topics))
        elif time.monotonic() - self._refreshed > REFRESH_SECONDS:
            known = await self._client.force_metadata_update()
        else:
            return
        if not known:
            raise KafkaError("no broker answers")
        self._refreshed = time.monotonic()

    async def _ask(self, partitions: Collection[Part]) -> Ends:
        ends = Ends()
        by_leader: dict[int, dict[str, list[tuple[int, int]]]] = {}
        for topic, number in partitions:
            if self._client.cluster.partitions_for_topic(topic) is None:
                ends.gone[topic, number] = "UnknownTopicOrPartitionError"
                continue
            leader = self._client.cluster.leader_for_partition(TopicPartition(topic, number))
            if leader is None or leader == -1:
                self._refreshed = float("-inf")
                continue
            by_leader.setdefault(leader, {}).setdefault(topic, []).append((number, LATEST))
        # One after the other: the cluster of one broker is the usual one, and an answer takes a millisecond.
        for leader, topics in by_leader.items():
            answer = await self._client.send(leader, OffsetRequest(-1, self._isolation, list(topics.items())))
            for topic, told in answer.topics:
                for partition, code, _, offset in told:
                    problem = for_code(code)
                    if problem is NoError:
                        ends.offsets[topic, partition] = offset
                    elif problem.invalid_metadata or problem.retriable:
                        self._refreshed = float("-inf")
                    else:
                        ends.gone[topic, partition] = problem.__name__
        return ends
