"""Makes the properties of a sink task's consumer, and closes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.errors import ConfigValueError
from keelman.engine.clients import consumer_properties, with_token
from keelman.kafka.properties.connector_clients import merged, sink_group, sink_member
from keelman.kafka.properties.settings import for_java
from keelman.kafka.properties.table import ASSIGNMENT, ASSIGNORS, COOPERATIVE

CLOSE_SECONDS = 2.0
LAST_POLLS_SECONDS = 0.1
SESSION_SECONDS = 10.0
SESSION, POLL = "session.timeout.ms", "max.poll.interval.ms"
POLL_MS = 300_000
# How much longer than a writer can be a zombie the group waits before it gives the writer's partitions to another.
ZOMBIE_FACTOR = 1.5

# Large enough that a batch's fixed cost in Python does not matter, small enough that it stays in the processor's cache:
# a batch five times as large took a third more processor time a record.
BATCH_RECORDS = 2_000

# Bounded so that a copy of any size stays small: at most 16 MB and one fetch wait in the client.
CONSUMER_DEFAULTS: dict[str, Any] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 16_384,
    "queued.min.messages": 100_000,
    "fetch.message.max.bytes": 1_048_576,
    "heartbeat.interval.ms": 1_000,
    "socket.nagle.disable": True,
    # The delay before the sink reads a listed topic that is created later, or an added partition; by default the
    # client library looks for them every five minutes.
    "topic.metadata.refresh.interval.ms": 5_000,
}

# For Java's consumer. It fetches more once it has returned all records of a partition, so its heap holds little more.
OWN_DEFAULTS = {
    "allow.auto.create.topics": "false",
    "heartbeat.interval.ms": "1000",
    "fetch.max.bytes": "16777216",
    "metadata.max.age.ms": "5000",
    "metric.reporters": "",
    "enable.metrics.push": "false",
}
OWN_ASSIGNORS = "RangeAssignor,RoundRobinAssignor,CooperativeStickyAssignor"
"""The assignors of Java's consumer by default: those of the client library's, and Kafka Connect's."""

AGE = "metadata.max.age.ms"
CONNECTION = ("bootstrap.servers", "client.dns.lookup", "security.", "sasl.", "ssl.")


def sink_consumer_properties(
    worker: Mapping[str, str],
    config: Mapping[str, str],
    connector: str,
    task: int,
    *,
    read_committed: bool,
    zombie_seconds: float,
) -> dict[str, Any]:
    """Returns the properties for the client library. The user's settings win; raises ConfigValueError for unusable
    ones, such as a time-out of the group that is shorter than `zombie_seconds`."""
    _check_waits(worker, config, zombie_seconds)
    session = max(SESSION_SECONDS, zombie_seconds * ZOMBIE_FACTOR)
    chosen = {
        "group.id": sink_group(worker, config, connector),
        "group.instance.id": sink_member(worker, connector, task),
        "client.id": f"connector-consumer-{connector}-{task}",
        "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        SESSION: round(session * 1000),
    }
    properties = {**CONSUMER_DEFAULTS, **chosen, **consumer_properties(worker, config)}
    properties[POLL] = max(int(properties[SESSION]), int(properties.get(POLL, POLL_MS)))
    return properties


def own_consumer_properties(
    worker: Mapping[str, str], config: Mapping[str, str], own: Mapping[str, Any], most: int
) -> dict[str, str]:
    """Returns the properties for a Java consumer that reads at most `most` records at a time; `own` are those for the
    client library. Passes the user's settings on verbatim where our own consumer would use them too."""
    merged_properties = for_java(merged(worker, config, "consumer"), "consumer")
    ours = {
        key: str(own[key]) for key in ("group.id", "group.instance.id", "client.id", "isolation.level", SESSION, POLL)
    }
    assignors = ASSIGNORS.names(ASSIGNMENT, merged_properties.get(ASSIGNMENT, OWN_ASSIGNORS))
    return {
        **OWN_DEFAULTS,
        **merged_properties,
        **ours,
        ASSIGNMENT: ",".join(f"{ASSIGNORS.package}.{assignor}" for assignor in assignors),
        "max.poll.records": str(most),
        "auto.offset.reset": "none",
        "enable.auto.commit": "false",
    }


class StepwiseConsumer(Consumer):  # type: ignore[misc]
    """The client library's consumer in a group whose partitions move one by one: its callbacks get only partitions that
    come or go, and `assign` works as in other groups."""

    def assign(self, partitions: list[ClientPartition]) -> None:
        """Reads these partitions from these offsets, and no others."""
        self.incremental_unassign(self.assignment())
        self.incremental_assign(partitions)


def library_consumer(properties: Mapping[str, Any], beat: Callable[[], None]) -> Consumer:
    """Returns the client library's consumer. Raises KafkaException, and what `with_token` raises."""
    stepwise = properties.get(ASSIGNMENT) == COOPERATIVE
    return (StepwiseConsumer if stepwise else Consumer)(with_token(properties, beat))


def passed_over_assignors(worker: Mapping[str, str], config: Mapping[str, str], own: Mapping[str, Any]) -> list[str]:
    """Returns the user's assignors that the client library's consumer ignores."""
    text, used = merged(worker, config, "consumer").get(ASSIGNMENT, ""), str(own.get(ASSIGNMENT, "")).split(",")
    named = ASSIGNORS.names(ASSIGNMENT, text)
    return [assignor for assignor in named if ASSIGNORS.legal[assignor] not in used or assignor == "StickyAssignor"]


def _check_waits(worker: Mapping[str, str], config: Mapping[str, str], zombie_seconds: float) -> None:
    merged_config, least = merged(worker, config, "consumer"), round(zombie_seconds * 1000)
    for key in (SESSION, POLL):
        text = merged_config.get(key, "").strip()
        if text.isdigit() and int(text) < least:
            whose = f"consumer.override.{key}" if f"consumer.override.{key}" in config else f"consumer.{key}"
            raise ConfigValueError(
                whose,
                text,
                f"Value must be at least {least}: so long a task that has lost its partitions may still have an open "
                "transaction",
            )


def lapse_seconds(properties: Mapping[str, Any]) -> float:
    """Returns the shortest time after its last poll at which a frozen task may have lost its partitions."""
    return min(int(properties[SESSION]), int(properties[POLL])) / 1000


def most_records(worker: Mapping[str, str], config: Mapping[str, str]) -> int:
    """Returns the most records of a sink's batch: `max.poll.records`, at most BATCH_RECORDS. Raises
    ConfigValueError."""
    key = "max.poll.records"
    text = merged(worker, config, "consumer").get(key, "").strip() or str(BATCH_RECORDS)
    if not text.isdigit() or int(text) < 1:
        raise ConfigValueError(key, text, "Value must be at least 1")
    return min(int(text), BATCH_RECORDS)


def metadata_age_seconds(worker: Mapping[str, str], config: Mapping[str, str]) -> float | None:
    """Returns the configured maximum age of topic metadata; None without one. The client refuses a value that is no
    number."""
    text = merged(worker, config, "consumer").get(AGE, "").strip()
    return int(text) / 1000 if text.isdigit() else None


def watch_properties(worker: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of a topic watch, named as in Java: the connection to the sink's source cluster, and the
    maximum age of metadata."""
    merged_config = merged(worker, config, "consumer")
    return {k: v for k, v in merged_config.items() if k.startswith(CONNECTION) or k == AGE}


def close_soon(consumer: Consumer) -> None:
    """Closes the consumer; when no broker answers, the close continues in the background after the run has ended."""
    closing = threading.Thread(target=_close, args=(consumer,), name="closing", daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)


def _close(consumer: Consumer) -> None:
    """Takes an assignment that waits for the next poll, then closes the consumer.

    A close that finds one assigns it while its group is being ended, and may wait for that for ever, holding the
    interpreter's lock: https://github.com/confluentinc/librdkafka/issues/4884. Of 26 closes within the first seconds of
    a consumer 6 did so, none of 26 after a poll.
    """
    end = time.monotonic() + LAST_POLLS_SECONDS
    with suppress(KafkaException, RuntimeError):
        while consumer.consume(BATCH_RECORDS, 0) and time.monotonic() < end:
            pass
    consumer.close()
