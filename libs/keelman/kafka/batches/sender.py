"""Sends queued record batches to the leaders of their partitions: several requests under way, in order, with retries.

All decisions are made in `_drain`, one function that never waits, so the order cannot change on the way to a socket.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.structs import TopicPartition

from keelman.kafka.answers import Occasion
from keelman.kafka.batches.broker_connection import BrokerConnection
from keelman.kafka.batches.produce_failure import (
    AGAIN,
    CORRUPT,
    DUPLICATE,
    LEADER_MOVED,
    LEADER_NOT_AVAILABLE,
    NETWORK,
    OUT_OF_ORDER,
    TOO_LARGE,
    TOPIC_DENIED,
    UNKNOWN_TOPIC,
    UNSUPPORTED,
    ProduceFailure,
)
from keelman.kafka.batches.producer_requests import Produce, Produced
from keelman.kafka.batches.producer_settings import MAX_IN_FLIGHT, ProducerSettings
from keelman.kafka.batches.queue import PartitionQueue, ProducerIdentity, QueuedBatch
from keelman.kafka.batches.record_batch import intact
from keelman.kafka.clients import Client
from keelman.kafka.connections import ask_about
from keelman.runtime.background import Background

Sent = dict[tuple[str, int], tuple[PartitionQueue, QueuedBatch]]


class BatchSender:
    """Used in the loop it was made in."""

    def __init__(
        self,
        client: Client,
        settings: ProducerSettings,
        background: Background,
        *,
        admit: Callable[[PartitionQueue], bool],
        failed: Callable[[ProduceFailure], object],
    ) -> None:
        """`admit` returns whether a partition's batches may go yet; if not, `drain` is called once they may. `failed`
        is called when a batch cannot be delivered."""
        self.identity = ProducerIdentity()
        self.request: type[Produce] = Produce
        self.waiting_bytes = 0
        self.outstanding = 0
        """The number of batches queued or in flight."""
        self.sent = 0
        """The number of batches sent, repeats included."""
        self.most_bytes: dict[str, int] = {}
        """The largest batch size for each topic that refused a larger batch."""
        self._loop = asyncio.get_running_loop()
        self.moved = Occasion(self._loop)
        """Set off when batches were delivered or dropped."""
        self.when_delivered: Callable[[], object] | None = None
        """Called once, as soon as nothing is queued or in flight any more."""
        self._client = client
        self._settings = settings
        self._background = background
        self._admit = admit
        self._failed = failed
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._active: dict[tuple[str, int], PartitionQueue] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._refreshing: set[str] = set()
        self._numbers = count()
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        self._moved_at = 0.0
        self._until = math.inf

    @property
    def under_way(self) -> int:
        """The number of requests without an answer, whatever happened to their batches."""
        return sum(connection.in_flight for connection in self._connections.values())

    @property
    def request_is_known_again(self) -> bool:
        """Whether the brokers recognise a repeated batch."""
        return self._settings.acks == -1

    @property
    def throttled_until(self) -> float:
        """The latest time among all brokers."""
        return max([connection.throttled_until for connection in tuple(self._connections.values())], default=0.0)

    def send(
        self, topic: str, partition: int, batch: bytearray, records: int, on_stored: Callable[[int], None] | None
    ) -> None:
        """Queues a batch."""
        part = (topic, partition)
        queue = self._queues.get(part)
        if queue is None:
            queue = self._queues[part] = PartitionQueue(topic, partition)
        queue.waiting.append(QueuedBatch(batch, records, next(self._numbers), self._loop.time(), on_stored))
        self._active[part] = queue
        self.waiting_bytes += len(batch)
        self.outstanding += 1
        self.drain()

    def drain(self) -> None:
        """Sends the batches that may go, in the next turn of the loop."""
        self._look_again(0.0)

    def drain_now(self) -> None:
        """Sends the batches that may go before it returns."""
        if self._timer is not None:
            self._timer.cancel()
        self._drain()

    def ended(self) -> None:
        """Notes the end of the transaction: the next batch begins another."""
        self._until = math.inf

    def drop_unsent(self) -> None:
        """Drops batches that were never sent. Others are sent until answered: their sequence numbers are taken."""
        for queue in self._active.values():
            unsent = [batch for batch in queue.waiting if batch.sequence < 0]
            self._forget(unsent)
            for _ in unsent:
                queue.waiting.pop()  # sent batches come before unsent ones
        self.notify()

    def drop_all(self) -> None:
        """Drops everything; batches in flight may arrive yet."""
        for queue in self._queues.values():
            self._forget(queue.waiting)
            self._forget(queue.in_flight)
            queue.waiting.clear()
            queue.in_flight.clear()
        self.notify()

    def _forget(self, batches: Iterable[QueuedBatch]) -> None:
        for batch in batches:
            self.outstanding -= 1
            self.waiting_bytes -= len(batch.data)

    def notify(self) -> None:
        """Wakes the callers that wait for `moved`."""
        self.moved.happen()

    def _look_again(self, when: float) -> None:
        if self._timer is not None:
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._drain) if when else self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._timer = None
        try:
            while loads := self._loads():
                for node, sent in loads.items():
                    # A failure during the search may have dropped all batches.
                    left = {part: (queue, batch) for part, (queue, batch) in sent.items() if batch in queue.in_flight}
                    if left:
                        self._ship(node, left)
        except Exception as error:
            # The loop would only log an error of its callback, and the batches taken would wait for ever.
            self._failed(ProduceFailure(NETWORK, repr(error)))

    def _loads(self) -> dict[int, Sent]:
        """Returns the batches that may go now: at most one of each partition, by broker."""
        now = self._loop.time()
        loads: dict[int, Sent] = {}
        for part, queue in tuple(self._active.items()):
            if not queue.waiting:
                self._active.pop(part, None)
            elif queue.may_send(now, self.identity):
                node = self._ready(queue, now)
                if node is not None:
                    batch = queue.take(self.identity, transactional=self._settings.transactional_id is not None)
                    if self._until == math.inf:
                        self._until = now + self._settings.transaction_seconds
                    queue.node = node
                    loads.setdefault(node, {})[part] = (queue, batch)
            elif queue.retry_at > now:
                self._look_again(queue.retry_at)
        return loads

    def _ready(self, queue: PartitionQueue, now: float) -> int | None:
        """Returns the broker to which the queue's next batch may go now."""
        node = self._client.cluster.leader_for_partition(TopicPartition(queue.topic, queue.partition))
        throttled_until = (
            0.0 if node is None or node not in self._connections else self._connections[node].throttled_until
        )
        if not queue.in_flight and self._is_late(queue, now, throttled_until):
            return None
        if throttled_until > now:
            self._look_again(min(throttled_until, self._until))
        # Admission comes after throttling: it may begin a transaction, which would age meanwhile.
        if throttled_until > now or not self._admit(queue):
            return None
        if node is None or node < 0:
            self._no_leader(queue, now, UNKNOWN_TOPIC if node is None else LEADER_NOT_AVAILABLE)
            return None
        if queue.in_flight and queue.node != node:
            return None
        connection = self._connections.get(node)
        if connection is None:
            connection = self._connections[node] = BrokerConnection(self._client, node, self._background, self.drain)
        if not connection.open:
            self._connect(node, connection, queue, now)
            return None
        return node if connection.in_flight < min(self._settings.max_in_flight, MAX_IN_FLIGHT) else None

    def _is_late(self, queue: PartitionQueue, now: float, throttled_until: float) -> bool:
        """Whether the time for the queue's next batch is over; then the producer has failed."""
        since = max(queue.waiting[0].queued_at, self._moved_at, throttled_until)
        reason = queue.problem_text
        if now >= self._until:
            limit = f"transaction.timeout.ms={self._settings.transaction_timeout_ms}"
            reason = (
                reason or f"{self.waiting_bytes} bytes were left at the end of their transaction's time, see {limit}"
            )
        elif now < since + self._settings.delivery_timeout_ms / 1000:
            return False
        text = f"{queue.topic}-{queue.partition}: not delivered in time: {reason}"
        self._failed(ProduceFailure(queue.problem or NETWORK, text))
        return True

    def _no_leader(self, queue: PartitionQueue, now: float, code: int) -> None:
        if queue.topic in self._client.cluster.unauthorized_topics:
            self._failed(ProduceFailure(TOPIC_DENIED, queue.topic))
            return
        self._background.start(self._refresh(queue.topic))
        queue.hold(now, code, "no leader is known")
        self._look_again(queue.retry_at)

    async def _refresh(self, topic: str) -> None:
        if topic in self._refreshing:
            return
        self._refreshing.add(topic)
        try:
            await ask_about(self._client, topic)
        finally:
            self._refreshing.discard(topic)

    def _connect(self, node: int, connection: BrokerConnection, queue: PartitionQueue, now: float) -> None:
        if connection.retry_at > now:
            queue.problem, queue.problem_text = NETWORK, f"no connection to broker {node}"
            self._look_again(connection.retry_at)
        else:
            connection.connect()

    def _ship(self, node: int, sent: Sent) -> None:
        topics: dict[str, list[tuple[int, bytearray]]] = {}
        for queue, batch in sent.values():
            topics.setdefault(queue.topic, []).append((queue.partition, batch.data))
        settings = self._settings
        request = self.request(settings.transactional_id, settings.acks or 1, settings.request_timeout_ms, topics)
        self.sent += len(sent)
        try:
            self._connections[node].ask(
                request,
                settings.request_timeout_ms / 1000,
                partial(self._answered, sent),
                self._until,
                overdue=partial(self._doubt, node),
            )
        except IncompatibleBrokerVersion as error:
            self._failed(ProduceFailure(UNSUPPORTED, str(error)))

    def _doubt(self, node: int) -> None:
        """Refreshes the leaders of a silent broker's batches. If other brokers lead all of these partitions, no longer
        waits for its answer: batches that it may have stored are recognised by their numbers."""
        sent = {part for part, queue in self._queues.items() if queue.in_flight and queue.node == node}
        leaders = {self._client.cluster.leader_for_partition(TopicPartition(*part)) for part in sent}
        if self.request_is_known_again and not leaders & {node, None, -1}:
            self._connections[node].give_up()
            return
        for topic in {topic for topic, _ in sent}:
            self._background.start(self._refresh(topic))

    def _answered(self, sent: Sent, parts: list[Produced], text: str) -> None:
        left = dict(sent)
        try:
            for part in parts:
                entry = left.pop((part.topic, part.partition), None)
                if entry is not None:
                    self._judge(*entry, part.error_code, part.base_offset, part.message)
            for entry in left.values():
                self._judge(*entry, NETWORK, -1, text or "the answer left the partition out")
        except Exception as error:  # as in _drain
            self._failed(ProduceFailure(NETWORK, repr(error)))
        if not self.outstanding and self.when_delivered is not None:
            call, self.when_delivered = self.when_delivered, None
            call()
        self.moved.happen(at_once=True)
        if self._active:
            self.drain()

    def _judge(self, queue: PartitionQueue, batch: QueuedBatch, code: int, offset: int, text: str) -> None:
        if batch not in queue.in_flight:  # dropped meanwhile
            return
        if code in (0, DUPLICATE):
            queue.delivered(batch)
            self._moved_at = self._loop.time()
            self._forget((batch,))
            if batch.on_stored is not None:
                batch.on_stored(-1 if code else offset)
            return
        follows = queue.follows_another(batch)
        queue.again(batch)
        self._active[(queue.topic, queue.partition)] = queue
        if code == OUT_OF_ORDER and follows:
            return
        if code in TOO_LARGE and batch.records > 1:
            self._split(queue, batch)
            return
        if code not in AGAIN or (code == CORRUPT and not intact(batch.data)):
            if code == CORRUPT:
                text = f"the record batch was damaged before it was sent ({text})"
            if code in TOO_LARGE:
                text = f"a record of {len(batch.data)} bytes is too large for it, see max.message.bytes"
            self._failed(ProduceFailure(code, f"{queue.topic}-{queue.partition}: {text}"))
            return
        queue.hold(self._loop.time(), code, text)
        if code in LEADER_MOVED:
            self._background.start(self._refresh(queue.topic))

    def _split(self, queue: PartitionQueue, batch: QueuedBatch) -> None:
        """Halves a batch that is larger than the topic's own `max.message.bytes`."""
        size = len(batch.data)
        self.most_bytes[queue.topic] = min(size // 2, self.most_bytes.get(queue.topic, size))
        parts = queue.split(batch, transactional=self._settings.transactional_id is not None)
        self._forget((batch,))
        self.outstanding += len(parts)
        self.waiting_bytes += sum(len(part.data) for part in parts)
