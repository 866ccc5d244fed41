"""Publishes and follows events and reports: compacted topics of facts, keyed by name; the newest fact of a key wins.

Correctness does not depend on them, so no caller waits for them: a publisher of reports keeps the newest value of each
key while the broker is away, and a reader begins again from the beginning after any problem.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError

from keelman.kafka.broker_client import BrokerAdminClient, BrokerConsumer, BrokerProducer
from keelman.kafka.clients import client_arguments, low_level_client
from keelman.kafka.probe import broker_answers
from keelman.kafka.topics import create_missing
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings, wait_or_stop

log = get_logger()
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it logs each failed try; an outage is logged once, here

COPY_RUN_REPORTS = "keelman.reports.copy_run.v1"
WORKER_REPORTS = "keelman.reports.worker.v1"
CONNECTOR_REPORTS = "keelman.reports.connector.v1"
REPORT_TOPICS = (COPY_RUN_REPORTS, WORKER_REPORTS, CONNECTOR_REPORTS)
AUDIT = "keelman.audit.v1"

# A consumer that fell behind can still see the deletes of this long ago; older facts of a key go soon after newer ones.
TOPIC_PROPERTIES = {
    "cleanup.policy": "compact",
    "delete.retention.ms": "86400000",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "3600000",
    "segment.bytes": "67108864",
}
AUDIT_PROPERTIES = {
    "cleanup.policy": "delete",
    "retention.ms": str(90 * 86_400_000),
    "segment.bytes": "67108864",
}
"""Of the audit's topic: its events are a history, of 90 days."""
NO_PROPERTIES: Mapping[str, str] = {}
KEYS_KEPT = 100_000
REQUEST_MS = 10_000
LAST_SECONDS = 2.0
ASK_SECONDS = 1.0
MAX_REPLICAS = 3
STARTING_SECONDS, LOOK_SECONDS = 30.0, 0.5
TWO_REPLICAS = {"min.insync.replicas": "1"}
"""With two replicas, requiring both in sync would stop all events when one of the brokers is lost."""


def event_topic(noun: str) -> str:
    """Returns the topic of a noun's events, e.g. keelman.events.worker_cluster.v1."""
    return f"keelman.events.{noun}.v1"


@dataclass(frozen=True, slots=True)
class Fact:
    """One record of a topic; a value of None means that the key is gone."""

    topic: str
    key: str
    value: bytes | None


async def ensure_topics(
    bootstrap_servers: str,
    topics: Iterable[str],
    client_properties: Mapping[str, str] = NO_PROPERTIES,
    topic_properties: Mapping[str, str] = TOPIC_PROPERTIES,
) -> None:
    """Creates the missing topics, with one partition each: its order is the order of the facts.

    Waits for brokers that are only starting, so that each topic gets its three replicas where there are three
    brokers. Raises Unavailable when the brokers cannot be reached or refuse.
    """
    with _translated(bootstrap_servers):
        admin = BrokerAdminClient(
            **_connection(bootstrap_servers, client_properties), client_id="keelman-feed", request_timeout_ms=REQUEST_MS
        )
        try:
            await admin.start()
            missing = sorted(set(topics) - set(await admin.list_topics()))
            if not missing:
                return
            replicas = await _replicas(admin, bootstrap_servers)
            properties = dict(topic_properties) if replicas > 2 else {**topic_properties, **TWO_REPLICAS}
            new_topics = [NewTopic(t, 1, replicas, topic_configs=properties) for t in missing]
            _, refused = await create_missing(admin, new_topics)
            for topic, reason in refused.items():
                raise Unavailable(f"topic {topic} could not be created on {bootstrap_servers}: {reason}")
        finally:
            await admin.close()


async def _replicas(admin: Any, bootstrap_servers: str) -> int:
    """Returns the number of brokers, three at most; waits for brokers that have an address and do not run yet."""
    replicas = min(MAX_REPLICAS, len(set(bootstrap_servers.split(","))))
    end = time.monotonic() + STARTING_SECONDS
    while True:
        brokers = len((await admin.describe_cluster())["brokers"])
        if brokers >= replicas or time.monotonic() > end:
            return min(MAX_REPLICAS, max(1, brokers))
        await asyncio.sleep(LOOK_SECONDS)


class EventPublisher:
    """Publishes in order and waits for the brokers' answer; used by the relays of the outbox and of the audit."""

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Sequence[str],
        client_properties: Mapping[str, str] = NO_PROPERTIES,
        topic_properties: Mapping[str, str] = TOPIC_PROPERTIES,
    ) -> None:
        """`client_properties` are those of Java's clients: how these brokers are reached. `topic_properties` are for
        topics that are missing."""
        self._bootstrap = bootstrap_servers
        self._properties = client_properties
        self._topics = topics
        self._topic_properties = topic_properties
        self._producer: Any = None

    async def __aenter__(self) -> EventPublisher:
        """Creates missing topics; raises Unavailable when the brokers cannot be reached."""
        await _answers(self._bootstrap, self._properties)
        await ensure_topics(self._bootstrap, self._topics, self._properties, self._topic_properties)
        with _translated(self._bootstrap):
            self._producer = await _producer(self._bootstrap, self._properties)
        return self

    async def __aexit__(self, *exc: object) -> None:
        # The next publisher repeats facts without an answer; with the broker away, a flush would take the
        # client's whole time-out, with requests for brokers without a pause.
        sender = self._producer._sender
        if sender is not None and sender.sender_task is not None:
            sender.sender_task.cancel()
        with contextlib.suppress(KafkaError, OSError):
            await self._producer.stop()

    async def publish(self, facts: Sequence[Fact]) -> None:
        """Returns when all are stored, in this order within a topic. Raises Unavailable when some may not be: then all
        of them have to be published again, and readers drop duplicates."""
        with _translated(self._bootstrap):
            waits = [await self._producer.send(f.topic, f.value, f.key.encode()) for f in facts]
            for wait in waits:
                while not wait.done():
                    try:
                        async with asyncio.timeout(ASK_SECONDS):
                            await asyncio.shield(wait)
                    except TimeoutError:
                        await _answers(self._bootstrap, self._properties)
                wait.result()


class ReportPublisher:
    """Publishes reports in the background: the newest of each key wins while the broker is away.

    An async context manager. Without bootstrap servers it does nothing. It never raises into its user; a problem
    is logged once until it is over. Used by workers and Spark services, and by state to drop outdated reports.
    """

    def __init__(
        self, bootstrap_servers: str, source: str, client_properties: Mapping[str, str] = NO_PROPERTIES
    ) -> None:
        """`client_properties` are those of Java's clients: how these brokers are reached."""
        self._bootstrap = bootstrap_servers
        self._properties = client_properties
        self._source = source
        self._newest: dict[tuple[str, str], bytes | None] = {}
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> ReportPublisher:
        if self._bootstrap:
            siblings = await self._stack.enter_async_context(Siblings())
            siblings.start(self._run(), name="report-publisher")
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Waits a moment for the remaining reports to be sent."""
        if self._bootstrap and self._newest:
            await wait_or_stop(self._none, LAST_SECONDS)
        await self._stack.aclose()

    def publish(self, topic: str, key: str, value: bytes | None) -> None:
        """Takes the newest value of a key, None for its end; returns at once."""
        if not self._bootstrap:
            return
        self._newest.pop((topic, key), None)
        self._newest[(topic, key)] = value
        if len(self._newest) > KEYS_KEPT:
            self._newest.pop(next(iter(self._newest)))
        self._none.clear()
        self._some.set()

    async def _run(self) -> None:
        backoff = Backoff(first=0.2, most=1.0)
        while True:
            try:
                async with EventPublisher(self._bootstrap, REPORT_TOPICS, self._properties) as publisher:
                    await self._drain_into(publisher, backoff)
            except Unavailable as error:
                if backoff.is_new(error.message):
                    log.warning("reports_wait", source=self._source, error=error.message)
                await asyncio.sleep(backoff.next())

    async def _drain_into(self, publisher: EventPublisher, backoff: Backoff) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            batch = dict(self._newest)
            if batch:
                try:
                    await publisher.publish([Fact(t, k, v) for (t, k), v in batch.items()])
                except Unavailable:
                    self._some.set()
                    raise
                if not backoff.is_first:
                    log.info("reports_flow_again", source=self._source)
                backoff.reset()
                for key, value in batch.items():
                    if key in self._newest and self._newest[key] is value:
                        del self._newest[key]
                if not self._newest:
                    self._none.set()


async def consume(
    bootstrap_servers: str, topics: Sequence[str], client_properties: Mapping[str, str] = NO_PROPERTIES
) -> AsyncIterator[Fact]:
    """Yields every fact of the topics from their beginning, then each new one; never ends by itself.

    After any problem it begins again from the beginning, so a reader must expect old facts.
    """
    backoff = Backoff(first=0.2, most=1.0)
    while True:
        try:
            await _answers(bootstrap_servers, client_properties)
            await ensure_topics(bootstrap_servers, topics, client_properties)
            async for fact in _from_the_beginning(bootstrap_servers, topics, client_properties):
                backoff.reset()
                yield fact
        except Unavailable as error:
            if backoff.is_new(error.message):
                log.warning("feed_waits", topics=list(topics), error=error.message)
            await asyncio.sleep(backoff.next())


async def _from_the_beginning(
    bootstrap_servers: str, topics: Sequence[str], client_properties: Mapping[str, str]
) -> AsyncIterator[Fact]:
    consumer = BrokerConsumer(
        **_connection(bootstrap_servers, client_properties),
        client_id="keelman-feed",
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=REQUEST_MS,
        fetch_max_wait_ms=500,
    )
    with _translated(bootstrap_servers):
        try:
            await consumer.start()
            partitions = [TopicPartition(t, 0) for t in topics]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            while True:
                batches = await consumer.getmany(timeout_ms=60_000, max_records=1000)
                for partition, records in batches.items():
                    for record in records:
                        if record.key is not None:
                            yield Fact(partition.topic, record.key.decode("utf-8", "replace"), record.value)
        finally:
            await consumer.stop()


async def _producer(bootstrap_servers: str, client_properties: Mapping[str, str]) -> Any:
    producer = BrokerProducer(
        **_connection(bootstrap_servers, client_properties),
        client_id="keelman-feed",
        acks="all",
        enable_idempotence=True,
        request_timeout_ms=REQUEST_MS,
    )
    try:
        await producer.start()
    except BaseException:
        await producer.stop()
        raise
    return producer


def _connection(bootstrap_servers: str, client_properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns the arguments of the library's clients for these brokers. Raises Unavailable for invalid properties."""
    try:
        return client_arguments({**client_properties, "bootstrap.servers": bootstrap_servers})
    except InvalidArgument as error:
        raise Unavailable(error.message) from None


async def _answers(bootstrap_servers: str, client_properties: Mapping[str, str]) -> None:
    """Raises Unavailable when no broker answers or lets the client in: the caller tries again."""
    properties = {**client_properties, "bootstrap.servers": bootstrap_servers}
    if properties.get("security.protocol", "PLAINTEXT").strip().upper() == "PLAINTEXT":
        if not await broker_answers(bootstrap_servers):
            raise Unavailable(f"no broker answers at {bootstrap_servers}")
        return
    try:
        async with low_level_client(properties, client_id="keelman-feed", timeout_ms=REQUEST_MS):
            return
    except (InvalidArgument, Unauthenticated) as error:
        raise Unavailable(error.message) from None


@contextlib.contextmanager
def _translated(bootstrap_servers: str) -> Iterator[None]:
    try:
        yield
    except (KafkaError, OSError) as error:
        raise Unavailable(f"the brokers at {bootstrap_servers} do not answer: {error!r}") from error
