"""Takes dead members out of a group of workers, and says there that they will not come back.

Whoever says it must know that the member is dead, or that another has its place: one that lives finds at its next
heartbeat that it is out, ends what it copies and joins again.
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
from keelman.kafka.groups.protocol import Described, GroupClient, Member
from keelman.model.errors import InvalidArgument

SETTLED_SECONDS = 1.0
CLIENT_ID = "connect-"


def client_id_of(worker: str) -> str:
    """The client id of a worker (host:port) in its group: what is seen of it while the group rebalances."""
    return f"{CLIENT_ID}{worker}"


def by_url(described: Described) -> dict[str, list[Member]]:
    """Our own members by their addresses; none while the group rebalances."""
    found: dict[str, list[Member]] = {}
    for member in described.members if described.protocol == PROTOCOL else ():
        with contextlib.suppress(InvalidArgument):
            if member.metadata:
                found.setdefault(decode_metadata(member.metadata).url, []).append(member)
    return found


async def say_farewell(group: GroupClient, member: str, url: str, *, leader: bool) -> str:
    """Says it for a member with this id and address; what was done, for the log. Raises Unavailable.

    `leader` is True of one that is known to have led: nobody has to be notified.
    """
    described = await group.describe()
    others = [one for one in described.members if one.member != member]
    if await group.leave(member) == codes.UNKNOWN_MEMBER:
        return "it was not in the group any more"
    if leader or not others:
        return "left; a new leader waits for nobody"
    await _notify_leader(group, url)
    return "left, and said so"


async def say_farewell_of(group: GroupClient, worker: str, url: str, *, waits: bool) -> str:
    """The same for all members that are a worker (host:port), whose ids are not known; what was done.

    `waits`: whether their leader gives who is gone some time to come back, and so has to hear that they will not:
    that costs the group one more round. Raises Unavailable.
    """
    described = await group.describe()
    urls = {m.member for m in by_url(described).get(url, ())}
    mine = [m.member for m in described.members if m.member in urls or m.client_id == client_id_of(worker)]
    gone = [await group.leave(member) for member in mine]
    if all(code == codes.UNKNOWN_MEMBER for code in gone):
        return "it was not in the group any more"
    if len(described.members) == len(mine):
        return "left; nobody else is in the group"
    if not waits:
        return "left; its leader waits for nobody"
    await _notify_leader(group, url)
    return "left, and said so"


async def _notify_leader(group: GroupClient, url: str) -> None:
    """The leader remembers who had what: it has to hear from this address that nobody will come back to it."""
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
                # Whoever has not asked for its part of this round yet would have to join the next one.
                await asyncio.sleep(SETTLED_SECONDS)
            return
    finally:
        if member:
            await group.leave(member)
