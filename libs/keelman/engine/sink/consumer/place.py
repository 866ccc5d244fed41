"""A sink task's place in its group, and whether the place's partitions are still those that the sink must read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from keelman.connect.errors import RetriableConnectError
from keelman.connect.records import TopicPartition
from keelman.engine.clients import client_settings, partition_of, with_token
from keelman.engine.failure import RunFailure
from keelman.engine.sink.consumer.consumer import watch_properties
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.kafka.groups.static_members import remove_static_members
from keelman.kafka.properties.connector_clients import merged, sink_group, sink_member
from keelman.kafka.properties.table import ASSIGNMENT
from keelman.model.errors import Unavailable
from keelman.runtime.logs.logging import get_logger

ANSWER_SECONDS = 8.0
REFUSED_SECONDS = 15.0
"""Longer than members of ended tasks stay in a group by default."""

_log = get_logger()


class ConsumerPlace:
    """The place of one sink task, which each copy run checks once, at its first assignment.

    A static member that comes back gets its former partitions, and the group does not deal again: neither
    when its sink reads other topics by now, nor when topics and partitions were added while the group had no member.
    """

    def __init__(self, worker: Mapping[str, str], config: Mapping[str, str], connector: str, task: int) -> None:
        self._properties = watch_properties(worker, config)
        self._group = sink_group(worker, config, connector)
        self._member = sink_member(worker, connector, task)
        self._assignors = merged(worker, config, "consumer").get(ASSIGNMENT, "").strip() or "those of the default"
        self._looked = False
        self._refused_at: float | None = None

    def given_up(self, consumer: Consumer, subscription: Subscription, assigned: Iterable[ClientPartition]) -> bool:
        """Returns whether the group must deal again. Then the member has left; its consumer has no partitions until it
        has joined again, which it does by itself.

        Raises KafkaException when the brokers do not answer, RetriableConnectError when they do not let it leave.
        """
        self._refused_at = None
        if self._looked:
            return False
        mine, expected = _places(assigned), _wanted(consumer, subscription)
        self._looked = True
        if mine == expected or not outdated(mine, expected, self._dealt()):
            return False
        _log.info("sink_place_given_up", group=self._group, assigned=len(mine), wanted=len(expected))
        self._leave()
        consumer.assign([])
        return True

    def refused(self) -> None:
        """Handles the group's refusal of this member, which has no assignor in common with others. Removes its own
        former member, which may be one of those, with another configuration. Siblings remove theirs, or these lapse.

        Raises RunFailure if that has not helped for `REFUSED_SECONDS`, RetriableConnectError."""
        now = time.monotonic()
        if self._refused_at is None:
            self._refused_at = now
            self._leave()
        elif now - self._refused_at > REFUSED_SECONDS:
            raise RunFailure(
                "TASK_FAILED",
                f"group {self._group} refuses the task: a member has none of its assignors. Name one of that "
                f"member's assignors in consumer.override.{ASSIGNMENT} (now {self._assignors}) or end that member",
            )

    def _leave(self) -> None:
        try:
            asyncio.run(remove_static_members(self._properties, self._group, [self._member]))
        except Unavailable as error:
            raise RetriableConnectError(error.message) from None

    def _dealt(self) -> set[TopicPartition] | None:
        """Returns all partitions of the group's members; None while the group deals again in any case."""
        admin = AdminClient(with_token(client_settings(self._properties, "admin")))
        group = admin.describe_consumer_groups([self._group], request_timeout=ANSWER_SECONDS)[self._group].result()
        if group.state != ConsumerGroupState.STABLE:
            return None
        return {place for member in group.members for place in _places(member.assignment.topic_partitions)}


def outdated(
    mine: set[TopicPartition], topic_partitions: set[TopicPartition], dealt: set[TopicPartition] | None
) -> bool:
    """Returns whether a member has unwanted partitions, or wants partitions that no member has."""
    return dealt is not None and bool(mine - topic_partitions or topic_partitions - dealt)


def _wanted(consumer: Consumer, subscription: Subscription) -> set[TopicPartition]:
    topics = consumer.list_topics(timeout=ANSWER_SECONDS).topics
    names = [name for name in subscription.names(topics) if name in topics]
    return {TopicPartition(name, number) for name in names for number in topics[name].partitions}


def _places(partitions: Iterable[ClientPartition]) -> set[TopicPartition]:
    return {partition_of(partition) for partition in partitions}
