"""Takes static members out of a consumer group, so that nobody waits for their sessions to end.

A consumer with a `group.instance.id` stays a member when it closes: its group is not empty, and its partitions are
nobody else's, before its session time-out is over. Only a LeaveGroup that names the instance ends that sooner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Schema, String

from keelman.kafka.clients import low_level_client
from keelman.kafka.group import COORDINATOR_LOADING, LOST_COORDINATOR, NONE, UNKNOWN_MEMBER, GroupClient
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff

ANSWER_MS = 5_000
SECONDS = 15.0
_PASSING = (*LOST_COORDINATOR, COORDINATOR_LOADING)
_GONE = (NONE, UNKNOWN_MEMBER)

# LeaveGroup version 3 (KIP-345), the first that names instances and the last that is not a flexible one.
_TEXT = String("utf-8")


class _LeaveGroupResponse(Response):  # type: ignore[misc]  # the library is not typed
    API_KEY = 13
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("members", Array(("member_id", _TEXT), ("group_instance_id", _TEXT), ("error_code", Int16))),
    )


class _LeaveGroupStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 13
    API_VERSION = 3
    RESPONSE_TYPE = _LeaveGroupResponse
    SCHEMA = Schema(("group", _TEXT), ("members", Array(("member_id", _TEXT), ("group_instance_id", _TEXT))))


class _LeaveGroup(Request[_LeaveGroupStruct]):  # type: ignore[misc]
    """Removes static members, whoever they are now: their member ids need not be known."""

    API_KEY = 13

    def __init__(self, group: str, instance_ids: Sequence[str]) -> None:
        self._group = group
        self._members = [("", instance) for instance in instance_ids]

    def build(self, request_struct_class: type[_LeaveGroupStruct]) -> _LeaveGroupStruct:
        return request_struct_class(self._group, self._members)


async def remove_static_members(properties: Mapping[str, str], group: str, instance_ids: Sequence[str]) -> None:
    """Takes these members out of the group at once; those that are no members count as removed.

    `properties` are those of Java's clients. For members whose consumer was closed in order and will not come back:
    one that still runs is shut out by this and fails as fenced. Raises Unavailable, also when the broker refuses it.
    """
    if not instance_ids:
        return
    backoff = Backoff(first=0.05, most=1.0)
    async with low_level_client(properties, client_id=f"{group}-leaving", timeout_ms=ANSWER_MS) as client:
        asking = GroupClient(client, group, session_ms=0, rebalance_ms=0)
        deadline = asyncio.get_running_loop().time() + SECONDS
        while True:
            answer = await asking.ask(_LeaveGroup(group, instance_ids))
            errors = [answer.error_code, *(code for _, _, code in answer.members or ())]
            wrong = next((code for code in errors if code not in _GONE), NONE)
            if wrong == NONE:
                return
            if wrong not in _PASSING or asyncio.get_running_loop().time() > deadline:
                named = ", ".join(instance_ids)
                raise Unavailable(f"group {group}: static members {named} cannot be removed: error {wrong}")
            await asyncio.sleep(backoff.next())
