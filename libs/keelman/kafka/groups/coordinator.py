"""Checks whether a group's coordinator answers, and reports why it does not while other brokers do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForGroupError,
)
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.clients import Client
from keelman.kafka.coordinator_lookup import GROUP, coordinator_of
from keelman.kafka.leaders.client import one_line

GROUPS_TOPIC = "__consumer_offsets"
LOST = (GroupCoordinatorNotAvailableError.errno, NotCoordinatorForGroupError.errno)


@dataclass(frozen=True, slots=True)
class CoordinatorProblem:
    """Why a coordinator does not answer, for people. `forming`: brokers answer, and are about to choose the
    coordinator, as for the first group of new brokers or after a start; on busy machines that takes a while."""

    text: str
    forming: bool = False


async def coordinator_problem(client: Client, group: str, *, seconds: float) -> CoordinatorProblem | None:
    """Returns why the coordinator of this group does not answer within `seconds`; None if it does. A coordinator that
    denies this client access counts as answering."""
    broker: int | None = None
    try:
        async with asyncio.timeout(seconds):
            broker = await coordinator_of(client, GROUP, group)
            answer = await client.send(broker, DescribeGroupsRequest([group]))
    except GroupAuthorizationFailedError:
        return None
    except GroupCoordinatorNotAvailableError:
        text = f"no broker is the coordinator of group {group!r}: its partition of {GROUPS_TOPIC} has no leader"
        return CoordinatorProblem(text, await _is_forming(client, seconds))
    except (KafkaError, OSError, AssertionError) as error:  # a TimeoutError too
        return CoordinatorProblem(_why_silent(client, group, broker, error, seconds))
    if answer.groups[0][0] in LOST:
        return CoordinatorProblem(f"{_named(client, broker)} is not the coordinator of group {group!r}", forming=True)
    return None


async def _is_forming(client: Client, seconds: float) -> bool:
    """Returns whether no partition of the groups' topic lacks its leader because its brokers are gone: the topic is
    being created, or leaders are being chosen."""
    try:
        async with asyncio.timeout(seconds):
            answer = await client.send(client.get_random_node(), MetadataRequest([GROUPS_TOPIC], False))
    except (KafkaError, OSError, AssertionError):
        return False
    told = answer.to_object()
    alive = {broker["node_id"] for broker in told["brokers"]}
    partitions = [partition for topic in told["topics"] for partition in topic["partitions"]]
    return all(partition["leader"] >= 0 or alive.issuperset(partition["replicas"]) for partition in partitions)


def _why_silent(client: Client, group: str, broker: int | None, error: BaseException, seconds: float) -> str:
    if broker is None:
        return f"no broker names the coordinator of group {group!r}: {one_line(error)}"
    reason = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else one_line(error)
    return f"{_named(client, broker)}, the coordinator of group {group!r}, does not answer: {reason}"


def _named(client: Client, broker: int) -> str:
    metadata = client.cluster.broker_metadata(broker)
    return f"broker {broker}" if metadata is None else f"broker {broker} at {metadata.host}:{metadata.port}"
