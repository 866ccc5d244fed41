"""A compacted topic kept as a table in memory: read from its beginning, followed for ever, waited for by position."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from keelman.kafka.clients import Client, Consumer, consumer, low_level_client
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import deadline

log = get_logger()
LATEST = -1
POLL_SECONDS = 0.003
QUIET_MS = 10_000  # so long it waits for records before it asks itself again; they are there as soon as they come


@dataclass(frozen=True, slots=True)
class Row:
    """One record as it stands in the topic; a value of None is a tombstone."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


class TopicTable:
    """Follows one topic and hands every record, in order by partition, to `apply`.

    `read_to_end()` is the strong read: what was written before the call is applied when it returns. The ends are taken
    with ListOffsets READ_UNCOMMITTED even where records are read committed, since the end of a read_committed reader
    comes too early while a transaction is open.
    """

    def __init__(self, topic: str, partitions: int, apply: Callable[[Row], None]) -> None:
        self.topic = topic
        self._partitions = [TopicPartition(topic, n) for n in range(partitions)]
        self._apply = apply
        self._consumer: Consumer | None = None
        self._client: Client | None = None
        self._moved = asyncio.Event()

    @contextlib.asynccontextmanager
    async def opened(
        self, properties: Mapping[str, str], *, client_id: str, read_committed: bool
    ) -> AsyncIterator[TopicTable]:
        """Opens the clients; `follow()` must run inside the block."""
        async with low_level_client(properties, client_id=client_id, timeout_ms=10_000) as client:
            made = consumer(properties, client_id=client_id, read_committed=read_committed)
            try:
                try:
                    await made.start()
                except (KafkaError, OSError) as error:
                    raise Unavailable(f"topic {self.topic} cannot be read: {error}") from None
                made.assign(self._partitions)
                await made.seek_to_beginning(*self._partitions)
                self._client, self._consumer = client, made
                yield self
            finally:
                await made.stop()
                self._client = self._consumer = None

    async def follow(self) -> None:
        """Reads for ever; a broker that is away is waited for. Runs as a task of its own, until cancelled."""
        assert self._consumer is not None
        backoff = Backoff(first=0.1, most=2.0)
        while True:
            try:
                batches = await self._consumer.getmany(timeout_ms=QUIET_MS)
            except KafkaError as error:
                log.warning("topic_read_failed", topic=self.topic, error=repr(error))
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            # No await between the fetch and the applying: a position that others see is an applied one.
            for batch in batches.values():
                for record in batch:
                    if record.key is not None:
                        self._apply(
                            Row(record.partition, record.offset, record.key, record.value, int(record.timestamp))
                        )
            self._moved.set()
            self._moved = asyncio.Event()

    async def read_to_end(self, *, seconds: float = 30.0) -> None:
        """Returns when everything written before the call is applied. Raises DeadlineExceeded, Unavailable."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                ends = await self.end_offsets()
        except TimeoutError:
            raise Unavailable(f"no broker tells the end of topic {self.topic} within {seconds} s") from None
        await self.read_to(ends, seconds=max(0.1, seconds - (time.monotonic() - begun)))

    async def read_to(self, ends: Mapping[int, int], *, seconds: float = 30.0) -> None:
        """Returns when the applied position of each of these partitions has reached its end.

        Raises DeadlineExceeded, and Unavailable where a broker tells no position.

        For the end that a write came to: it and all that was written before it is applied then.
        """
        assert self._consumer is not None
        late = DeadlineExceeded(f"topic {self.topic} was not read to its end in time: {dict(ends)}")
        # Over the question for a position too: without a leader it waits until there is one.
        async with deadline(seconds, late):
            for partition, end in ends.items():
                while await self._position(partition) < end:
                    # A marker at the end of a transaction moves the position, and no record tells of it.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_SECONDS):
                            await self._moved.wait()

    async def _position(self, partition: int) -> int:
        assert self._consumer is not None
        try:
            return int(await self._consumer.position(self._partitions[partition]))
        except KafkaError as error:  # after a request's time without one
            raise Unavailable(f"topic {self.topic}-{partition}: no position to read from: {error!r}") from None

    async def end_offsets(self) -> dict[int, int]:
        """End offset of each partition, read_uncommitted."""
        assert self._client is not None
        backoff = Backoff(first=0.05, most=1.0)
        while True:
            try:
                return await self._ask_ends(self._client)
            except (KafkaError, OSError) as error:
                log.debug("list_offsets_failed", topic=self.topic, error=repr(error))
                await asyncio.sleep(backoff.next())
                await self._client.force_metadata_update()

    async def _ask_ends(self, client: Client) -> dict[int, int]:
        if client.cluster.partitions_for_topic(self.topic) is None:
            await client.add_topic(self.topic)
        by_leader: dict[int, list[tuple[int, int]]] = {}
        for tp in self._partitions:
            leader = client.cluster.leader_for_partition(tp)
            if leader is None or leader == -1:
                raise KafkaError(f"{tp} has no leader now")
            by_leader.setdefault(leader, []).append((tp.partition, LATEST))
        ends: dict[int, int] = {}
        for leader, asked in by_leader.items():
            answer = await client.send(leader, OffsetRequest(-1, 0, [(self.topic, asked)]))
            for _, parts in answer.topics:
                for partition, code, _, offset in parts:
                    if for_code(code) is not NoError:
                        raise for_code(code)()
                    ends[partition] = offset
        return ends
