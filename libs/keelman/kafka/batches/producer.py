"""A producer of finished record batches: each is stored once and in order, in transactions if configured.

The brokers recognise a repeated batch by producer id, epoch and sequence number, so each is sent until it is answered
(KIP-98). With transaction version 2 (KIP-890, Kafka 4.0) each transaction has its own epoch, so that no late batch or
commit request can affect the next one; with older versions a commit is never repeated here.
https://cwiki.apache.org/confluence/display/KAFKA/KIP-890:+Transactions+Server-Side+Defense
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from keelman.kafka.batches.coordinator import BegunRequest, Coordinator
from keelman.kafka.batches.features import AskFeatures, FeaturesAnswer
from keelman.kafka.batches.produce_failure import NETWORK, SHUT_OUT, TOO_LONG, TOPIC_DENIED, ProduceFailure
from keelman.kafka.batches.producer_requests import (
    AddPartitions,
    AddPartitionsAnswer,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
    Produce,
    ProduceAdding,
    ProducerId,
)
from keelman.kafka.batches.producer_settings import ProducerSettings
from keelman.kafka.batches.queue import PartitionQueue, ProducerIdentity
from keelman.kafka.batches.sender import BatchSender
from keelman.kafka.batches.transaction_limit import longest_transaction_ms, refused_length
from keelman.kafka.connections import ask_about
from keelman.kafka.known_brokers import BROKERS
from keelman.kafka.leaders.client import LeaderClient
from keelman.kafka.leaders.metadata import AskMetadata
from keelman.runtime.background import Background

__all__ = ["BatchProducer", "ProduceFailure", "ProducerSettings"]

FENCE_SECONDS = 60.0
ATTEMPT_SECONDS = 2.0
"""A repeatable request to the coordinator is repeated after this time or half of the request time-out."""
FEATURE = "transaction.version"
EPOCH_EACH = 2
"""From this version on each transaction has its own epoch."""
LATEST = -1
_TOPIC, _LIMIT = 2, "max.message.bytes"
MARKING_SECONDS = 0.02
"""For this time after a transaction's end its markers may still be under way, so that the next cannot begin yet."""


class BatchProducer:
    """Used in the loop it was made in. A ProduceFailure that it raises is final."""

    def __init__(self, client: LeaderClient, settings: ProducerSettings) -> None:
        """`client` is bootstrapped, serves this producer alone, and is closed with it."""
        self.transaction_version = 0
        """The version that `fence` found; 2: an epoch for each transaction."""
        self._client = client
        self._settings = settings
        self._background = Background(self._broken)
        self._sender = BatchSender(client, settings, self._background, admit=self._admitted, failed=self._fail)
        self._coordinator = Coordinator(
            client, settings.transactional_id, min(settings.request_timeout_ms / 2000, ATTEMPT_SECONDS)
        )
        self._failure: ProduceFailure | None = None
        self._ending: BegunRequest | None = None
        self._sent_before = 0
        self._ended_at = float("-inf")
        self._added: set[tuple[str, int]] = set()
        self._adding: dict[tuple[str, int], None] = {}
        self._is_adding = False

    @property
    def throttled_until(self) -> float:
        """The time, by the loop's clock, until which a throttling broker takes nothing more, by its last answers."""
        return self._sender.throttled_until

    @property
    def coordinator_losses(self) -> int:
        """The number of requests to the transaction coordinator that were lost or had no answer."""
        return self._coordinator.losses

    @property
    def identity(self) -> ProducerIdentity:
        """The producer's current identity for the brokers."""
        return self._sender.identity

    async def fence(self) -> None:
        """Fences the former user of the transactional id, and ends its open transaction; retries for a while.

        Must be called once, before anything is sent. Raises ProduceFailure.
        """
        settings = self._settings
        if settings.acks != -1:
            return
        request = InitProducerId(settings.transactional_id, settings.transaction_timeout_ms)
        try:
            answer = await self._coordinator.ask(request, ProducerId, seconds=FENCE_SECONDS)
            if settings.transactional_id is not None:
                features = BROKERS.features(self._client.properties)
                if features is None:
                    features = (
                        await self._coordinator.ask(AskFeatures(), FeaturesAnswer, seconds=FENCE_SECONDS)
                    ).features
                    BROKERS.note_features(self._client.properties, features)
                self.transaction_version = features.get(FEATURE, 0)
        except ProduceFailure as error:
            if error.code == TOO_LONG:
                limit = await longest_transaction_ms(self._client)
                error = ProduceFailure(TOO_LONG, refused_length(settings.transaction_timeout_ms, limit))
            raise self._fail(error) from None
        self._sender.identity = ProducerIdentity(answer.producer_id, answer.epoch)
        self._sender.request = ProduceAdding if self.transaction_version >= EPOCH_EACH else Produce

    def send(
        self, topic: str, partition: int, batch: bytearray, records: int, on_stored: Callable[[int], None] | None = None
    ) -> None:
        """Queues an unstamped batch of `records` records, and begins a transaction if none is open; never waits.

        The producer owns `batch` from now on. `on_stored` is called in the loop with the base offset, or -1 if the
        broker only reported that it had the batch already. Batches sent without a pause between them go out in as few
        requests as possible. After a failure nothing is queued any more.
        """
        if self._failure is None:
            self._sender.send(topic, partition, batch, records, on_stored)

    def ship(self) -> None:
        """Sends the queue at once, as far as allowed; for a caller that queues nothing more now."""
        self._sender.drain_now()

    def commit_when_delivered(self, allowed: Callable[[], None]) -> None:
        """Sends the commit request in the turn of the loop in which the last batch turns out to be delivered,
        for a caller that sends nothing more before `end`, which waits for the answer.

        `allowed` is called right before; if it raises, nothing is sent. Nor is anything sent before transaction version
        2, whose commits are never repeated.
        """
        if self._failure is not None or self.transaction_version < EPOCH_EACH:
            return
        send = self._coordinator.prepared(self._end_request(commit=True))
        if send is not None:
            self._sender.when_delivered = partial(self._commit_now, send, allowed)

    def _commit_now(self, send: Callable[[], BegunRequest], allowed: Callable[[], None]) -> None:
        """Sends the commit request; `end` meets, and reports, any error that prevents it."""
        if self._failure is None and not self._busy:
            with contextlib.suppress(Exception):
                allowed()
                self._ending = send()

    @property
    def is_ending(self) -> bool:
        """Whether the request to commit is under way."""
        return self._ending is not None

    @property
    def most_bytes(self) -> Mapping[str, int]:
        """The largest batch size for each topic that refused a larger batch: such batches are sent in halves."""
        return self._sender.most_bytes

    async def room(self, most: int | None = None) -> None:
        """Returns once fewer than `most` bytes, or than the settings allow, wait. Raises the first failure."""
        most = self._settings.most_waiting_bytes if most is None else most
        while self._checked().waiting_bytes >= most:
            await self._sender.moved.wait()

    async def flush(self) -> None:
        """Returns once all is delivered. Raises the first failure."""
        while self._checked().outstanding:
            await self._sender.moved.wait()

    async def until(self, done: Callable[[], bool]) -> None:
        """Returns once `done` is true; it is called after each delivery of batches. Raises the first failure."""
        while not done():
            await self._checked().moved.wait()

    async def end(self, *, commit: bool) -> None:
        """Commits or aborts the batches sent since the last end; does nothing if there are none.

        A commit waits for all deliveries first. An abort drops unsent batches, waits for those under way, and is tried
        even after a failure, except when the producer was fenced. With transaction version 2 the request is repeated
        until it is answered or the request time-out is over; before, it goes out once. Raises ProduceFailure: the
        outcome of the transaction is then unknown, as it is when the call is cancelled.
        """
        if self._settings.transactional_id is None:
            return
        seconds = self._settings.request_timeout_ms / 1000
        if commit:
            await self.flush()
        elif self._failure is not None and self._failure.code in SHUT_OUT:
            return
        self._sender.when_delivered = None
        begun, self._ending = self._ending, None
        if begun is not None and not commit:
            self._fail(ProduceFailure(NETWORK, "the end of the transaction was not waited for"))
        if self._busy:
            try:
                async with asyncio.timeout(seconds):
                    await self._quiet()
            except TimeoutError:
                raise self._fail(ProduceFailure(NETWORK, "requests were not answered before the end")) from None
        if self._sender.sent == self._sent_before and not self._added:
            return
        version = self.transaction_version
        try:
            answer = await self._coordinator.ask(
                self._end_request(commit=commit),
                ProducerId,
                seconds=seconds,
                repeated=version >= EPOCH_EACH,
                begun=begun if commit else None,
            )
        except ProduceFailure as error:
            raise self._fail(error) from None
        except asyncio.CancelledError:
            self._fail(ProduceFailure(NETWORK, "the end of the transaction was not waited for"))
            raise
        if version >= EPOCH_EACH:
            self._sender.identity = ProducerIdentity(answer.producer_id, answer.epoch)
        self._sent_before = self._sender.sent
        self._sender.ended()
        self._ended_at = asyncio.get_running_loop().time()
        self._added.clear()

    def _end_request(self, *, commit: bool) -> EndTxn:
        assert self._settings.transactional_id is not None
        who = self._sender.identity
        kind = EndTxnWithEpoch if self.transaction_version >= EPOCH_EACH else EndTxn
        return kind(self._settings.transactional_id, who.producer_id, who.epoch, commit)

    async def _quiet(self) -> None:
        """Drops unsent batches, and returns once nothing is under way."""
        self._sender.drop_unsent()
        while self._busy:
            await self._sender.moved.wait()

    @property
    def _busy(self) -> bool:
        return bool(self._sender.outstanding or self._sender.under_way or self._is_adding)

    async def partitions(self, topic: str, least: int = 1) -> int:
        """Returns the topic's number of partitions, known for some minutes at most, refreshed if it is below `least`;
        0 for a missing topic. Raises ProduceFailure."""
        cluster = self._client.cluster
        for _ in range(2):  # the answer to a request that was already under way does not have a topic named since
            if len(cluster.partitions_for_topic(topic) or ()) >= least:
                break
            try:
                async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                    answered = await ask_about(self._client, topic)
            except TimeoutError:
                answered = False
            if not answered:
                raise ProduceFailure(NETWORK, f"no broker answers about topic {topic}")
            if topic in cluster.unauthorized_topics:
                raise ProduceFailure(TOPIC_DENIED, topic)
        return len(cluster.partitions_for_topic(topic) or ())

    async def most_message_bytes(self, topic: str) -> int | None:
        """Returns the topic's limit for one record batch, None if no broker reports it. Raises ProduceFailure where
        this client may not write to the topic."""
        node = self._client.get_random_node()
        try:
            topic_info = (await self._client.send(node, AskMetadata([topic], rights=True))).topics.get(topic)
            request = DescribeConfigsRequest([(_TOPIC, topic, [_LIMIT])])
            ((_, _, _, _, entries),) = (await self._client.send(node, request)).resources
        except (KafkaError, OSError, TimeoutError):
            return None
        if topic_info is not None and not topic_info.writable:
            raise ProduceFailure(TOPIC_DENIED, topic)
        return next((int(value) for name, value, *_ in entries if name == _LIMIT), None)

    async def log_ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Returns the end offsets of these partitions, with open transactions. Raises ProduceFailure."""
        ends: dict[int, int] = {}
        for number in partitions:
            leader = self._client.cluster.leader_for_partition(TopicPartition(topic, number))
            try:
                answer = await self._client.send(leader, OffsetRequest(-1, 0, [(topic, [(number, LATEST)])]))
            except (KafkaError, OSError, TimeoutError) as error:
                raise ProduceFailure(NETWORK, f"no broker reports the end of {topic}-{number}: {error!r}") from None
            ((_, ((_, code, _, ends[number]),)),) = answer.topics
            if code:
                raise ProduceFailure(code, f"{topic}-{number}")
        return ends

    async def cluster_id(self) -> str:
        """Returns the Kafka cluster's own id. Raises ProduceFailure when no broker answers."""
        try:
            answer = await self._client.send(self._client.get_random_node(), MetadataRequest([]))
        except (KafkaError, OSError, TimeoutError) as error:
            raise ProduceFailure(NETWORK, f"no broker reports the cluster's id: {error!r}") from None
        return str(answer.cluster_id)

    async def close(self) -> None:
        """Closes producer and client at once, without waiting. An open transaction stays open until its time-out
        or until the next producer of this transactional id fences."""
        self._fail(ProduceFailure(NETWORK, "the producer is closed"))
        await self._background.close()
        for connection in self._client._conns.values():
            if connection.connected():  # else close would wait until a frozen broker takes the sent bytes
                connection._writer.transport.abort()
        await self._client.close()

    def _checked(self) -> BatchSender:
        if self._failure is not None:
            raise self._failure
        return self._sender

    def _fail(self, failure: ProduceFailure) -> ProduceFailure:
        if self._failure is None:
            self._failure = failure
            self._sender.drop_all()
        return self._failure

    def _broken(self, error: BaseException) -> None:
        self._fail(error if isinstance(error, ProduceFailure) else ProduceFailure(NETWORK, repr(error)))

    def _admitted(self, queue: PartitionQueue) -> bool:
        """Adds the partition to the transaction, as each has to be before transaction version 2.

        With version 2 the brokers do so, but while the last transaction is still being marked they retry among each
        other only after 20 ms (add.partitions.to.txn.retry.backoff.ms). Then the transaction is begun here, with a
        request every other ms.
        """
        part = (queue.topic, queue.partition)
        if self._settings.transactional_id is None or part in self._added:
            return True
        if self.transaction_version >= EPOCH_EACH:
            marked = asyncio.get_running_loop().time() > self._ended_at + MARKING_SECONDS
            # Under a throttling quota, a batch that is refused because marking took longer counts all the same.
            if self._added or (marked and not self._sender.throttled_until):
                return True
        self._adding[part] = None
        if not self._is_adding:
            self._is_adding = True
            self._background.start(self._add())
        return False

    async def _add(self) -> None:
        assert self._settings.transactional_id is not None
        seconds = self._settings.delivery_timeout_ms / 1000
        try:
            while self._adding:
                parts = list(self._adding)
                self._adding.clear()
                topics: dict[str, list[int]] = {}
                for topic, partition in parts:
                    topics.setdefault(topic, []).append(partition)
                who = self._sender.identity
                request = AddPartitions(self._settings.transactional_id, who.producer_id, who.epoch, topics)
                await self._coordinator.ask(request, AddPartitionsAnswer, seconds=seconds)
                self._added.update(parts)
                if self.transaction_version >= EPOCH_EACH:
                    self._adding.clear()
                self._sender.drain()
        finally:
            self._is_adding = False
            self._sender.notify()
