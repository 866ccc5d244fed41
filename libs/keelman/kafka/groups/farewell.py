"""Removes dead members from a group of workers and notifies the group that they will not return.

The caller must know that the member is dead, or that another member has its place: a live member learns of its removal
at its next heartbeat, ends its copy runs and joins again.
"""

from __future__ import annotations

import asyncio
import contextlib

from keelman.kafka.groups import protocol as codes
from keelman.kafka.groups.connect_protocol import (
    PROTOCOL,
    PROTOCOL_TYPE,
    Metadata,
    OwnFields,
    decode_metadata,
    encode_metadata,
)  # fmt: skip
from keelman.kafka.groups.protocol import DescribedGroup, DescribedMember, GroupClient
from keelman.model.errors import InvalidArgument

SETTLED_SECONDS = 1.0
CLIENT_ID = "connect-"


def client_id_of(worker: str) -> str:
    """Returns the client id of a worker (host:port) in its group: all that shows the worker during a rebalance."""
    return f"{CLIENT_ID}{worker}"


def by_url(described: DescribedGroup) -> dict[str, list[DescribedMember]]:
    """Returns the group's keelman members by their addresses; none while the group rebalances."""
    members: dict[str, list[DescribedMember]] = {}
    for member in described.members if described.protocol == PROTOCOL else ():
        with contextlib.suppress(InvalidArgument):
            if member.metadata:
                members.setdefault(decode_metadata(member.metadata).url, []).append(member)
    return members


async def say_farewell(group: GroupClient, member: str, url: str, *, leader: bool) -> str:
    """Removes the member with this id and address; returns what was done, for the log. Raises Unavailable.

    `leader` is True for a member known to have led the group: then no notification is needed.
    """
    described = await group.describe()
    others = [other for other in described.members if other.member != member]
    if await group.leave(member) == codes.UNKNOWN_MEMBER:
        return "it was not in the group any more"
    if leader or not others:
        return "left; a new leader waits for no member"
    await _notify_leader(group, url)
    return "left, with notice"


async def say_farewell_of(group: GroupClient, worker: str, url: str, *, waits: bool) -> str:
    """Removes all members of one worker (host:port), whose member ids are unknown; returns what was done, for the log.

    `waits`: whether the group's leader gives lost members some time to return, and so must be notified that they will
    not: this costs the group one more round. Raises Unavailable.
    """
    described = await group.describe()
    urls = {m.member for m in by_url(described).get(url, ())}
    mine = [m.member for m in described.members if m.member in urls or m.client_id == client_id_of(worker)]
    gone = [await group.leave(member) for member in mine]
    if all(code == codes.UNKNOWN_MEMBER for code in gone):
        return "it was not in the group any more"
    if len(described.members) == len(mine):
        return "left; the group has no other member"
    if not waits:
        return "left; its leader waits for no member"
    await _notify_leader(group, url)
    return "left, with notice"


async def _notify_leader(group: GroupClient, url: str) -> None:
    """Tells the leader, which remembers former assignments, that the worker at this address will not return."""
    member = ""
    metadata = encode_metadata(Metadata(url, 0, None, OwnFields(leaving=True)))
    try:
        while True:
            joined = await group.join(member, PROTOCOL_TYPE, [(PROTOCOL, metadata)])
            member = joined.member or member
            if joined.error == codes.MEMBER_ID_REQUIRED:
                continue
            if joined.error == codes.NONE and joined.leader != joined.member:
                await group.sync(joined.generation, member, [])
                # A member that has not fetched its assignment of this round yet would have to join the next round.
                await asyncio.sleep(SETTLED_SECONDS)
            return
    finally:
        if member:
            await group.leave(member)
