"""Removes static members from a consumer group, so that the group need not wait for their sessions to end.

A consumer with a `group.instance.id` stays a member when it closes: until its session time-out is over, its group is
not empty, and its partitions stay assigned to it. Only a LeaveGroup that names the instance ends that sooner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiokafka.protocol.types import Array, Int16, Int32, Schema, String

from keelman.kafka.groups.protocol import NONE, UNKNOWN_MEMBER
from keelman.kafka.groups.requests import ask_group, request_of
from keelman.model.errors import Unavailable

ANSWER_MS = 5_000
SECONDS = 15.0
_GONE = (NONE, UNKNOWN_MEMBER)

# LeaveGroup version 3 (KIP-345), the first that names instances and the last non-flexible version.
_TEXT = String("utf-8")


_LEAVE_GROUP = request_of(
    *("LeaveGroup", 13, 3),
    Schema(("group", _TEXT), ("members", Array(("member_id", _TEXT), ("group_instance_id", _TEXT)))),
    Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("members", Array(("member_id", _TEXT), ("group_instance_id", _TEXT), ("error_code", Int16))),
    ),
)


async def remove_static_members(properties: Mapping[str, str], group: str, instance_ids: Sequence[str]) -> None:
    """Removes these members from the group at once; instances that are not members count as removed.

    `properties` are those of Java's clients. For members whose consumer was closed in order and will not return:
    a consumer that still runs is fenced by this and fails. Raises Unavailable, also when the broker refuses it.
    """
    if not instance_ids:
        return
    answer = await ask_group(
        properties,
        group,
        lambda: _LEAVE_GROUP(group, [("", instance) for instance in instance_ids]),  # whatever their member ids are
        client_id=f"{group}-leaving",
        answer_ms=ANSWER_MS,
        seconds=SECONDS,
    )
    for error in (answer.error_code, *(code for _, _, code in answer.members or ())):
        if error not in _GONE:
            named = ", ".join(instance_ids)
            raise Unavailable(f"group {group}: static members {named} cannot be removed: error {error}")
