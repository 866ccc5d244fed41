"""Checks whether a group's coordinator answers, and reports why it does not while other brokers do."""

from __future__ import annotations

import asyncio

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForGroupError,
)
from aiokafka.protocol.admin import DescribeGroupsRequest

from keelman.kafka.clients import Client
from keelman.kafka.coordinator_lookup import GROUP, coordinator_of
from keelman.kafka.leaders.client import one_line

GROUPS_TOPIC = "__consumer_offsets"
LOST = (GroupCoordinatorNotAvailableError.errno, NotCoordinatorForGroupError.errno)


async def coordinator_problem(client: Client, group: str, *, seconds: float) -> str:
    """Returns why the coordinator of this group does not answer within `seconds`, for people; empty if it does. A
    coordinator that denies this client access counts as answering."""
    broker: int | None = None
    try:
        async with asyncio.timeout(seconds):
            broker = await coordinator_of(client, GROUP, group)
            answer = await client.send(broker, DescribeGroupsRequest([group]))
    except GroupAuthorizationFailedError:
        return ""
    except (KafkaError, OSError, AssertionError) as error:  # a TimeoutError too
        return _why_silent(client, group, broker, error, seconds)
    if answer.groups[0][0] in LOST:
        return f"{_named(client, broker)} is not the coordinator of group {group!r}"
    return ""


def _why_silent(client: Client, group: str, broker: int | None, error: BaseException, seconds: float) -> str:
    if isinstance(error, GroupCoordinatorNotAvailableError):
        return f"no broker is the coordinator of group {group!r}: its partition of {GROUPS_TOPIC} has no leader"
    if broker is None:
        return f"no broker names the coordinator of group {group!r}: {one_line(error)}"
    reason = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else one_line(error)
    return f"{_named(client, broker)}, the coordinator of group {group!r}, does not answer: {reason}"


def _named(client: Client, broker: int) -> str:
    metadata = client.cluster.broker_metadata(broker)
    return f"broker {broker}" if metadata is None else f"broker {broker} at {metadata.host}:{metadata.port}"
