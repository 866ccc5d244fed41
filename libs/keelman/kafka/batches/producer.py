"""A producer of finished record batches: each in the log once and in order, in transactions where asked for.

The brokers know a batch again by producer id, epoch and sequence number, so each may be sent until it is answered
(KIP-98). With transaction version 2 (KIP-890, Kafka 4.0) each transaction has an epoch of its own, so that nothing that
comes late, be it a batch or the request to commit, can touch the next one; before that a commit is never repeated here.
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

from keelman.kafka.batches.coordinator import Begun, Coordinator
from keelman.kafka.batches.features import AskFeatures, FeaturesAnswer
from keelman.kafka.batches.produce_failure import NETWORK, SHUT_OUT, TOO_LONG, TOPIC_DENIED, ProduceFailure
from keelman.kafka.batches.producer_settings import ProducerSettings
from keelman.kafka.batches.queue import PartitionQueue, ProducerIdentity
from keelman.kafka.batches.sender import BatchSender
from keelman.kafka.batches.transaction_limit import longest_transaction_ms, refused_length
from keelman.kafka.batches.wire import (
    AddPartitions,
    AddPartitionsAnswer,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
    Produce,
    ProduceAdding,
    ProducerId,
)
from keelman.kafka.connections import ask_about
from keelman.kafka.fetching.client import FetchClient
from keelman.kafka.fetching.leader_epochs import AskMetadata
from keelman.kafka.known_brokers import BROKERS
from keelman.runtime.background import Background

__all__ = ["BatchProducer", "ProduceFailure", "ProducerSettings"]

FENCE_SECONDS = 60.0
ATTEMPT_SECONDS = 2.0
"""A request to the coordinator that may be repeated is, after so long or half of the request time-out."""
FEATURE = "transaction.version"
EPOCH_EACH = 2
"""From this version on each transaction has an epoch of its own."""
LATEST = -1
_TOPIC, _LIMIT = 2, "max.message.bytes"
MARKING_SECONDS = 0.02
"""So long after its end the markers of a transaction may still be under way, so that the next cannot begin yet."""


class BatchProducer:
    """Used in the loop it was made in. What it raises as ProduceFailure is final."""

    def __init__(self, client: FetchClient, settings: ProducerSettings) -> None:
        """`client` is bootstrapped, serves this producer alone, and is closed with it."""
        self.transaction_version = 0
        """As it was when `fence` asked; 2: an epoch for each transaction."""
        self._client = client
        self._settings = settings
        self._background = Background(self._broken)
        self._sender = BatchSender(client, settings, self._background, admit=self._admitted, failed=self._fail)
        self._coordinator = Coordinator(
            client, settings.transactional_id, min(settings.request_timeout_ms / 2000, ATTEMPT_SECONDS)
        )
        self._failure: ProduceFailure | None = None
        self._ending: Begun | None = None
        self._sent_before = 0
        self._ended_at = float("-inf")
        self._added: set[tuple[str, int]] = set()
        self._adding: dict[tuple[str, int], None] = {}
        self._is_adding = False

    @property
    def throttled_until(self) -> float:
        """In the loop's time: until when a broker that was sent to takes nothing more, by its last answers."""
        return self._sender.throttled_until

    @property
    def coordinator_losses(self) -> int:
        """How often a request to the transaction coordinator was lost with its answer."""
        return self._coordinator.losses

    @property
    def identity(self) -> ProducerIdentity:
        """Who it is to the brokers now."""
        return self._sender.identity

    async def fence(self) -> None:
        """Shuts out the former user of the transactional id, and ends what it left open; asks for a while.

        To be called once, before anything is sent. Raises ProduceFailure.
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
        """Queues an unstamped batch of so many records, and begins a transaction where there is none; never waits.

        `batch` is the producer's from now on. `on_stored` is called in the loop with the base offset, or -1 when the
        broker only said that it had the batch already. What is sent without a pause between goes out in as few
        requests as possible. After a failure nothing is queued any more.
        """
        if self._failure is None:
            self._sender.send(topic, partition, batch, records, on_stored)

    def ship(self) -> None:
        """Sends what is queued at once, as far as it may go; for a caller that queues nothing more now."""
        self._sender.drain_now()

    def commit_when_delivered(self, allowed: Callable[[], None]) -> None:
        """Has the request to commit go out in the turn in which the last of what was sent turns out to be delivered,
        for a caller that sends nothing more before `end`, which waits for the answer.

        `allowed` is called right before; where it raises nothing is sent, and neither is it before transaction version
        2, whose commits are never repeated.
        """
        if self._failure is not None or self.transaction_version < EPOCH_EACH:
            return
        send = self._coordinator.prepared(self._end_request(commit=True))
        if send is not None:
            self._sender.when_delivered = partial(self._commit_now, send, allowed)

    def _commit_now(self, send: Callable[[], Begun], allowed: Callable[[], None]) -> None:
        """What keeps it from being sent, `end` meets too, and reports it."""
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
        """How large batches should be for topics that refused larger ones: those are sent in halves."""
        return self._sender.most_bytes

    async def room(self, most: int | None = None) -> None:
        """Returns once fewer bytes than `most`, or than the settings allow, wait. Raises the first failure."""
        most = self._settings.most_waiting_bytes if most is None else most
        while self._checked().waiting_bytes >= most:
            await self._sender.moved.wait()

    async def flush(self) -> None:
        """Returns once all is delivered. Raises the first failure."""
        while self._checked().outstanding:
            await self._sender.moved.wait()

    async def until(self, done: Callable[[], bool]) -> None:
        """Returns once `done` says so, which is asked whenever batches were delivered. Raises the first failure."""
        while not done():
            await self._checked().moved.wait()

    async def end(self, *, commit: bool) -> None:
        """Commits or aborts what was sent since the last end; where nothing was, there is nothing to do.

        A commit waits for all deliveries first. An abort drops what has not gone out yet, waits for what has, and is
        tried even after a failure, unless that was to be shut out. With transaction version 2 the request is repeated
        until it is answered or the request time-out is over; before, it goes out once. Raises ProduceFailure: what
        became of the transaction is then not known, and neither is it when the call is cancelled.
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
        """Drops what never went out, and returns once nothing is under way."""
        self._sender.drop_unsent()
        while self._busy:
            await self._sender.moved.wait()

    @property
    def _busy(self) -> bool:
        return bool(self._sender.outstanding or self._sender.under_way or self._is_adding)

    async def partitions(self, topic: str, least: int = 1) -> int:
        """How many the topic has, as known for some minutes at most, or as asked now where that is fewer than `least`;
        0 when it is not there. Raises ProduceFailure."""
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
        """How large one record batch of the topic may be, None where no broker says. Raises ProduceFailure where this
        client may not write to it."""
        node = self._client.get_random_node()
        try:
            known = (await self._client.send(node, AskMetadata([topic], rights=True))).topics.get(topic)
            asked = DescribeConfigsRequest([(_TOPIC, topic, [_LIMIT])])
            ((_, _, _, _, entries),) = (await self._client.send(node, asked)).resources
        except (KafkaError, OSError, TimeoutError):
            return None
        if known is not None and not known.writable:
            raise ProduceFailure(TOPIC_DENIED, topic)
        return next((int(value) for name, value, *_ in entries if name == _LIMIT), None)

    async def log_ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Where these partitions end, open transactions and all. Raises ProduceFailure."""
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
        """The Kafka cluster's own. Raises ProduceFailure when no broker answers."""
        try:
            answer = await self._client.send(self._client.get_random_node(), MetadataRequest([]))
        except (KafkaError, OSError, TimeoutError) as error:
            raise ProduceFailure(NETWORK, f"no broker reports the cluster's id: {error!r}") from None
        return str(answer.cluster_id)

    async def close(self) -> None:
        """Ends at once, with the client; nothing is waited for. A transaction that is open stays so until its time-out
        or until the next of this transactional id fences."""
        self._fail(ProduceFailure(NETWORK, "the producer is closed"))
        await self._background.close()
        for connection in self._client._conns.values():
            if connection.connected():  # what a frozen broker does not take would be waited for
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
        """Before transaction version 2 each partition has to be added to each transaction.

        With it the brokers do so, but while the last transaction is still being marked they ask each other again after
        20 ms only (add.partitions.to.txn.retry.backoff.ms). So then a transaction is begun here, asking every other ms.
        """
        part = (queue.topic, queue.partition)
        if self._settings.transactional_id is None or part in self._added:
            return True
        if self.transaction_version >= EPOCH_EACH:
            marked = asyncio.get_running_loop().time() > self._ended_at + MARKING_SECONDS
            # Where a quota throttles, a batch that is refused because marking took longer pays for it all the same.
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
