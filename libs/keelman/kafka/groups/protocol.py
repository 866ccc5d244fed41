"""Kafka's classic group protocol, one request at a time, for members that are not consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from keelman.kafka.clients import Client
from keelman.kafka.coordinator_lookup import GROUP, coordinator_of
from keelman.kafka.groups.coordinator import CoordinatorProblem, coordinator_problem
from keelman.model.errors import PermissionDenied, Unavailable

# Kafka's error codes that a member has to distinguish.
UNKNOWN_SERVER_ERROR = -1
NONE = 0
COORDINATOR_LOADING = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
ILLEGAL_GENERATION = 22
INCONSISTENT_PROTOCOL = 23
UNKNOWN_MEMBER = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
GROUP_AUTHORIZATION_FAILED = 30
MEMBER_ID_REQUIRED = 79
GROUP_MAX_SIZE_REACHED = 81
LOST_COORDINATOR = (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


def kept_out(group: str) -> str:
    """Returns why a worker cannot be in its group, for people."""
    return f"group.id: the broker's access rules keep this worker out of {group!r}"


@dataclass(frozen=True, slots=True)
class Joined:
    """Answer to a JoinGroup; `members` (member id to metadata) only for the leader."""

    error: int
    generation: int
    leader: str
    member: str
    members: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member as DescribeGroups shows it; metadata is empty while the group rebalances."""

    member: str
    client_id: str
    host: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as DescribeGroups shows it."""

    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


class GroupClient:
    """Sends the group's requests to its coordinator. Every method raises Unavailable when no answer comes."""

    def __init__(self, client: Client, group: str, *, session_ms: int, rebalance_ms: int) -> None:
        self._client = client
        self._group = group
        self._session_ms = session_ms
        self._rebalance_ms = rebalance_ms
        self._coordinator: int | None = None
        self._news = asyncio.Event()

    async def join(self, member: str, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> Joined:
        """Sends JoinGroup with the metadata of the member's protocols; returns when the generation is complete,
        at the latest after the rebalance time-out."""
        request = JoinGroupRequest(
            self._group, self._session_ms, self._rebalance_ms, member, None, protocol_type, list(protocols)
        )
        answer = await self._ask_patiently(request)
        members = tuple((m[0], bytes(m[-1])) for m in answer.members)
        return Joined(answer.error_code, answer.generation_id, answer.leader_id, answer.member_id, members)

    async def sync(self, generation: int, member: str, assignments: Sequence[tuple[str, bytes]]) -> tuple[int, bytes]:
        """Sends SyncGroup, from the leader with all assignments; returns (error, the member's own assignment)."""
        request = SyncGroupRequest(self._group, generation, member, None, list(assignments))
        answer = await self._ask_patiently(request)
        return answer.error_code, bytes(answer.member_assignment or b"")

    async def heartbeat(self, generation: int, member: str, *, seconds: float) -> int:
        """Sends a heartbeat on its own connection: a pending JoinGroup blocks later requests. Returns an error code."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self.ask(HeartbeatRequest(self._group, generation, member), ConnectionGroup.DEFAULT)
        except TimeoutError:
            self._turn_to(None)
            raise Unavailable(f"group {self._group}: no heartbeat answer within {seconds} s") from None
        return int(answer.error_code)

    async def leave(self, member: str) -> int:
        """Sends LeaveGroup for this or for another, dead member; returns the error code."""
        answer = await self.ask(LeaveGroupRequest(self._group, member), ConnectionGroup.DEFAULT)
        return int(answer.error_code)

    async def describe(self) -> DescribedGroup:
        """Returns the group as its coordinator sees it. Raises Unavailable also while the coordinator is loading it."""
        answer = await self.ask(DescribeGroupsRequest([self._group]), ConnectionGroup.DEFAULT)
        error, _, state, kind, protocol, members = answer.groups[0][:6]
        if error in (COORDINATOR_LOADING, *LOST_COORDINATOR):
            self._turn_to(None)
            raise Unavailable(f"group {self._group}: its coordinator does not know it yet (error {error})")
        group_members = tuple(DescribedMember(m[0], m[1], m[2], bytes(m[3] or b"")) for m in members)
        return DescribedGroup(state, kind, protocol, group_members)

    async def problem(self, group: str = "", *, seconds: float) -> CoordinatorProblem | None:
        """Returns why the coordinator of the group, or of another one, does not answer; None if it does."""
        return await coordinator_problem(self._client, group or self._group, seconds=seconds)

    async def ask(self, request: Any, connection: Any = ConnectionGroup.DEFAULT) -> Any:
        """Sends a request to the coordinator. Raises Unavailable, and PermissionDenied if access rules forbid it."""
        try:
            if self._coordinator is None:
                self._turn_to(await coordinator_of(self._client, GROUP, self._group))
            answer = await self._client.send(self._coordinator, request, group=connection)
        except GroupAuthorizationFailedError:
            raise PermissionDenied(kept_out(self._group)) from None
        except (KafkaError, OSError, AssertionError) as error:
            self._turn_to(None)
            raise Unavailable(f"group {self._group}: its coordinator does not answer: {error!r}") from None
        if getattr(answer, "error_code", 0) in LOST_COORDINATOR:
            self._turn_to(None)
        return answer

    async def _ask_patiently(self, request: Any) -> Any:
        """Sends a request, like `ask`, whose answer may be late: gives it up once another broker is known to be the
        coordinator, since a coordinator whose host is gone never reports the change."""
        asking = asyncio.ensure_future(self.ask(request, ConnectionGroup.COORDINATION))
        moved = asyncio.ensure_future(self._moves())
        try:
            await asyncio.wait((asking, moved), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise Unavailable(f"group {self._group}: its coordinator is another broker now")
        finally:
            for task in (asking, moved):
                task.cancel()
            await asyncio.gather(asking, moved, return_exceptions=True)

    async def _moves(self) -> None:
        """Returns when the coordinator differs from the next one that becomes known."""
        first = self._coordinator
        while first is None:
            await self._news.wait()
            first = self._coordinator
        while self._coordinator in (None, first):
            await self._news.wait()

    def _turn_to(self, coordinator: int | None) -> None:
        self._coordinator = coordinator
        self._news.set()
        self._news = asyncio.Event()
