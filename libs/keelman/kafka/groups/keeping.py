"""Keeps a consumer group's offsets from expiring while the group has no members.

Brokers delete them `offsets.retention.minutes` after the last member has left (KIP-211); a later commit from outside
the group does not extend that. The time of each commit counts only for a group that never had a member. So a member
joins and leaves, and the retention begins again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.admin import DescribeConfigsRequest

from keelman.kafka.clients import Client, low_level_client
from keelman.kafka.coordinator_lookup import GROUP, coordinator_of
from keelman.kafka.groups.offsets import committed, fetch_offsets
from keelman.kafka.groups.protocol import (
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    GroupClient,
)
from keelman.kafka.groups.requests import error_codes
from keelman.model.errors import Unavailable
from keelman.runtime.logs.logging import get_logger

log = get_logger()
ANSWER_MS = 10_000
SESSION_MS = 10_000
LEAVE_SECONDS = 2.0
RETENTION = "offsets.retention.minutes"
SHORTEST_DEFAULT_SECONDS = 86_400.0
"""A day: the shortest default that brokers have ever had; used when the brokers do not report their setting."""
_BROKER = 4
_WITHOUT_MEMBERS = ("Empty", "Dead")
"""To a request for classic groups an empty KIP-848 group is dead; with the member it becomes a classic one."""
_CONSUMER = "consumer"
# Every consumer that joins meanwhile knows one of these: the group refuses a member without a common assignor.
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
_OTHERS_CAME = (INCONSISTENT_PROTOCOL, GROUP_MAX_SIZE_REACHED)
"""Only a group that has members by now gives these answers."""
_NO_TOPICS = b"\x00\x00" + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff"
"""A consumer's subscription, version 0, to no topics."""
_REFUSED = (asyncio.TimeoutError, KafkaError, OSError, AssertionError)


@dataclass(frozen=True, slots=True)
class Kept:
    """`renewed`: the group had offsets and no members, and its retention has begun anew; the retention is that of the
    group's coordinator, in seconds."""

    renewed: bool
    retention_seconds: float


async def keep_offsets(properties: Mapping[str, str], group: str, *, client_id: str) -> Kept:
    """Renews the retention of a group that has offsets and no members. Offsets of a group with members do not expire.

    `properties` are those of Java's clients. A consumer that joins at this moment gets its partitions assigned once
    more. Raises Unavailable, PermissionDenied.
    """
    async with low_level_client(properties, client_id=client_id, timeout_ms=ANSWER_MS) as client:
        retention = await _retention_seconds(client, group)
        asking = GroupClient(client, group, session_ms=SESSION_MS, rebalance_ms=SESSION_MS)
        empty = await _has_offsets(asking, group) and (await asking.describe()).state in _WITHOUT_MEMBERS
        return Kept(empty and await _join_and_leave(asking, group), retention)


async def _has_offsets(asking: GroupClient, group: str) -> bool:
    answer = await asking.ask(fetch_offsets(group))
    for code in error_codes(answer):
        if code != NONE:
            raise Unavailable(f"group {group}: the brokers do not report its offsets: {for_code(code).__name__}")
    return bool(committed(answer))


async def _join_and_leave(asking: GroupClient, group: str) -> bool:
    """Returns, after the member has left again, whether it was admitted. Brokers delay the first member of a group by
    `group.initial.rebalance.delay.ms`, to wait for others."""
    subscription = [(name, _NO_TOPICS) for name in _ASSIGNORS]
    joined = await asking.join("", _CONSUMER, subscription)
    member = joined.member
    try:
        if joined.error == MEMBER_ID_REQUIRED:
            joined = await asking.join(member, _CONSUMER, subscription)
    finally:
        if member:
            await _leave(asking, member)
    if joined.error not in (NONE, *_OTHERS_CAME):
        name = for_code(joined.error).__name__
        raise Unavailable(f"group {group}: it cannot be joined to keep its offsets: {name}")
    return joined.error == NONE


async def _leave(asking: GroupClient, member: str) -> None:
    with contextlib.suppress(Unavailable, TimeoutError):  # then its session ends the membership
        async with asyncio.timeout(LEAVE_SECONDS):
            await asking.leave(member)


async def _retention_seconds(client: Client, group: str) -> float:
    """Returns the retention of the group's coordinator; the shortest default if this client may not read it."""
    try:
        node = await coordinator_of(client, GROUP, group)
        answer = await client.send(node, DescribeConfigsRequest([(_BROKER, str(node), [RETENTION])]))
        values: Sequence[str] = [entry[1] for entry in answer.resources[0][4] if entry[0] == RETENTION]
        return float(values[0]) * 60
    except (*_REFUSED, LookupError, TypeError, ValueError) as error:
        log.debug("offsets_retention_unknown", group=group, error=repr(error))
        return SHORTEST_DEFAULT_SECONDS
