"""Keeps this worker's place in its group: joins, sends heartbeats, notices when it has to join again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from keelman.kafka.groups import protocol as codes
from keelman.kafka.groups.connect_protocol import (
    PROTOCOL,
    PROTOCOL_TYPE,
    Metadata,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from keelman.kafka.groups.farewell import by_url
from keelman.kafka.groups.protocol import DescribedGroup, DescribedMember, GroupClient, Joined
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError, PermissionDenied, Unavailable
from keelman.model.work import MemberAssignment, Work
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.worker.group.former_members import FormerMembers
from keelman.worker.group.session_clock import SessionClock

log = get_logger()

# The leader's work with the metadata of all: member id to metadata in, member id to assignment out.
Share = Callable[[str, Mapping[str, Metadata]], Awaitable[Mapping[str, MemberAssignment]]]


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """The place that one generation gave this worker."""

    member: str
    generation: int
    leader: bool
    assignment: MemberAssignment

    def leads_since(self, before: GroupPlace | None) -> bool:
        """Returns whether this worker leads now, and no other can have led since it was given the place `before`."""
        if before is None or not (before.leader and self.leader):
            return False
        return before.generation + 1 == self.generation


class GroupEvents(Protocol):
    """Receives the events of the worker's place. Neither method may block or raise."""

    def on_refused(self, problem: str) -> None:
        """Called with each try while the brokers refuse the group for a reason that does not pass by itself."""

    def on_lost(self, reason: str) -> None:
        """Called when the place has just been lost, for this reason."""


class Membership:
    """One member of the group. `heartbeats()` runs all the time, beside the caller of `join`."""

    def __init__(
        self,
        group: GroupClient,
        *,
        group_id: str,
        session_ms: int,
        heartbeat_ms: int,
        wake: Callable[[], None],
        on_member: Callable[[str, bool], None],
        former: FormerMembers | None = None,
    ) -> None:
        """Calls `on_member` with the member id, "" once the worker has left, and whether it leads."""
        self._group = group
        self._group_id = group_id
        self._session = session_ms / 1000
        self._clock = SessionClock(session=session_ms / 1000, interval=heartbeat_ms / 1000)
        self._wake = wake
        self._on_member = on_member
        self._former = former or FormerMembers(session_ms / 1000, 0.0)
        self.member = ""
        self.generation = -1
        self.place: GroupPlace | None = None
        self.rejoin = True
        self.lost = False
        self.losses = 0  # compared by the runner of this place's work: a join may come before it sees the loss
        self.rebalances = 0  # places that it was given
        self.rebalanced_at = 0.0  # when it got the last of them, by the monotonic clock
        self.rebalance_seconds = 0.0  # total time of waiting for them
        self.longest_rebalance = 0.0  # the longest of these waits, in seconds
        self.members = 0  # of the group, where it leads
        self.problem = ""  # why there is no place, if the broker gave a reason
        self.waits_for = ""  # the dead members of another kind that it waits for, and the most time for that
        self._joining = False

    @property
    def healthy(self) -> bool:
        """True while the last heartbeat succeeded and this worker has its place."""
        return self.place is not None and not self.lost and self._clock.fresh

    @property
    def heard_at(self) -> float:
        """When the group's coordinator last answered it, by the monotonic clock."""
        return self._clock.answered_at

    @property
    def leads(self) -> bool:
        """Whether this worker certainly leads: it has its place, and the group confirms it."""
        return self.place is not None and self.place.leader and self.healthy

    @property
    def lasting(self) -> bool:
        """True while no other can have been given its work before a lease that is renewed now lapses.

        See `SessionClock`.
        """
        return self.place is not None and not self.lost and self._clock.lasts

    async def proven(self) -> bool:
        """Returns whether the group's coordinator confirms now that this worker has the place that it was given
        last."""
        place = self.place
        if place is None or not self.healthy:
            return False
        try:
            code = await self._group.heartbeat(place.generation, place.member, seconds=self._clock.patience_seconds)
        except KeelmanError:
            return False
        return code in (codes.NONE, codes.REBALANCE_IN_PROGRESS) and self.place is place

    def request_rejoin(self) -> None:
        """Requests a new round of the group."""
        self.rejoin = True
        self._wake()

    async def replace_predecessors(self, url: str) -> None:
        """Removes dead members that had this worker's address. Called once, before the first join.

        Tries for as long as they can live on: a member that does not leave is thrown out by then. Raises
        PermissionDenied where this worker may not be in its group.
        """
        try:
            async with asyncio.timeout(self._session):
                described = await self._describe()
                await self._replace(url, described)
        except (TimeoutError, Unavailable):
            log.info("predecessors_unknown", group=self._group_id)

    async def _replace(self, url: str, described: DescribedGroup) -> None:
        for member in by_url(described).get(url, ()):
            log.info("replacing_member", member=member.member)
            await self._group.leave(member.member)

    async def present(self) -> Mapping[str, Sequence[DescribedMember]]:
        """Returns the group's members by the addresses that they advertise; none while its coordinator does not
        answer."""
        try:
            async with asyncio.timeout(self._clock.patience_seconds):
                return by_url(await self._group.describe())
        except (TimeoutError, Unavailable, PermissionDenied):
            return {}

    async def _describe(self) -> DescribedGroup:
        """Returns the group, once its coordinator answers."""
        backoff = Backoff(first=0.05, most=1.0)
        while True:
            try:
                return await self._group.describe()
            except Unavailable as error:
                log.info("group_unavailable", group=self._group_id, error=error.message)
                await asyncio.sleep(backoff.next())

    async def join(self, metadata: Callable[[], Metadata], share: Share, events: GroupEvents) -> GroupPlace:
        """Joins until it has a place, calling `metadata` for each try; as leader, shares the work out.

        `events` is notified of refusals, and of a place that turns out to be lost.

        Raises FailedPrecondition when live Java workers are in the group, InvalidArgument and PermissionDenied for what
        the broker refuses for good.
        """
        backoff, began = Backoff(first=0.05, most=1.0), time.monotonic()
        self._joining = True
        try:
            while True:
                self.rejoin = False
                try:
                    place = await self._try(metadata, share, events)
                except Unavailable as error:
                    log.info("group_unavailable", group=self._group_id, error=error.message)
                    place = None
                if place is not None:
                    self.place, self.generation = place, place.generation
                    self.lost, self.problem, self.waits_for = False, "", ""
                    self._former.forget()
                    self.rebalances, self.rebalanced_at = self.rebalances + 1, time.monotonic()
                    self.rebalance_seconds += self.rebalanced_at - began
                    self.longest_rebalance = max(self.longest_rebalance, self.rebalanced_at - began)
                    self._clock.placed()
                    return place
                await asyncio.sleep(backoff.next())
        finally:
            self._joining = False

    async def _try(self, metadata: Callable[[], Metadata], share: Share, events: GroupEvents) -> GroupPlace | None:
        joined = await self._group.join(self.member, PROTOCOL_TYPE, [(PROTOCOL, encode_metadata(metadata()))])
        if joined.error == codes.MEMBER_ID_REQUIRED:
            self.member = joined.member
            joined = await self._group.join(self.member, PROTOCOL_TYPE, [(PROTOCOL, encode_metadata(metadata()))])
        if joined.error != codes.NONE:
            await self._on_refusal(joined.error, events)
            return None
        self.member, self.generation = joined.member, joined.generation
        leads = joined.leader == joined.member
        self.members = len(joined.members) if leads else 0
        self._on_member(self.member, leads)
        answers = await self._shared(joined, share) if leads else []
        sent = time.monotonic()
        error, raw = await self._group.sync(joined.generation, joined.member, answers)
        if error == codes.NONE:
            self._clock.answered(sent)
            return GroupPlace(joined.member, joined.generation, leads, decode_assignment(raw))
        if error == codes.UNKNOWN_MEMBER:
            self._forget(events)
        elif error == codes.UNKNOWN_SERVER_ERROR:
            self._report(self._too_large(sum(len(raw) for _, raw in (*joined.members, *answers))), events)
        return None

    async def _shared(self, joined: Joined, share: Share) -> list[tuple[str, bytes]]:
        """Returns each member's assignment. The metadata of many members is read in a thread, and so are the
        assignments written: beside it heartbeats go on."""
        members = await asyncio.to_thread(_decoded, joined.members)
        return await asyncio.to_thread(_encoded, await share(joined.member, members))

    async def _on_refusal(self, error: int, events: GroupEvents) -> None:
        if error == codes.INCONSISTENT_PROTOCOL:
            await self._wait_or_end(await self._group.describe())
        elif error == codes.INVALID_SESSION_TIMEOUT:
            raise InvalidArgument(
                "session.timeout.ms: the broker refuses it: legal is from its group.min.session.timeout.ms to its "
                "group.max.session.timeout.ms (6000 to 1800000 unless set)"
            )
        if error == codes.GROUP_AUTHORIZATION_FAILED:
            raise PermissionDenied(codes.kept_out(self._group_id))
        if error == codes.UNKNOWN_MEMBER:
            self._forget(events)
        elif error == codes.UNKNOWN_SERVER_ERROR:
            self._report(self._too_large(0), events)
        elif error == codes.GROUP_MAX_SIZE_REACHED:
            self._report(
                f"group {self._group_id} is full: the brokers' group.max.size limits its workers: raise it, or stop "
                "a worker",
                events,
            )

    def _too_large(self, size: int) -> str:
        """Describes the broker's only unknown error for a group: it cannot write the group's record."""
        size_text = f" of about {size} bytes" if size else ""
        return (
            f"the brokers cannot store group {self._group_id}: its record{size_text} is over their limit: raise "
            "max.message.bytes of topic __consumer_offsets (the brokers' message.max.bytes, 1048588 unless set)"
        )

    def _report(self, problem: str, events: GroupEvents) -> None:
        """Logs a problem once, before the next try: it may be mended while this worker waits, and running work
        continues."""
        if problem != self.problem:
            log.error("group_refuses", group=self._group_id, error=problem)
        self.problem = problem
        events.on_refused(problem)

    async def _wait_or_end(self, described: DescribedGroup) -> None:
        """Waits for killed members of another kind to lapse. Raises FailedPrecondition once they prove to be alive."""
        names = ", ".join(f"{m.client_id or m.member}@{m.host.lstrip('/')}" for m in described.members) or "unknown"
        java = described.protocol_type == PROTOCOL_TYPE
        has = (
            f"group {self._group_id} has {'Java Connect workers' if java else f'{described.protocol_type}s'} ({names})"
        )
        members = [member.member for member in described.members]
        if not members:  # they have gone since
            return
        if not java or not self._former.may_lapse(members, described.state, time.monotonic()):
            raise FailedPrecondition(f"{has}: stop them first", reason="JAVA_WORKERS")
        waits_for = f"{has}: waiting until they lapse; if they are alive this worker ends"
        if waits_for != self.waits_for:
            log.warning("waiting_for_members", group=self._group_id, most_seconds=self._former.limit, why=waits_for)
        self.waits_for = waits_for

    def _forget(self, events: GroupEvents) -> None:
        self.member, self.place = "", None
        self._lose("the group knows it no more", events)

    def _lose(self, reason: str, events: GroupEvents) -> None:
        if not self.lost:
            log.warning("group_lost", group=self._group_id, member=self.member, why=reason)
            self.losses += 1
            events.on_lost(reason)
        self.lost, self.rejoin = True, True
        self._wake()

    async def heartbeats(self, events: GroupEvents) -> None:
        """Runs for ever: one heartbeat an interval; quicker while none is answered, and after a round.

        `events` is notified when the place is lost.
        """
        while True:
            await asyncio.sleep(self._clock.pause_seconds)
            if self.place is None or not self.member:
                continue
            place, sent, seconds = self.place, time.monotonic(), self._clock.patience_seconds
            try:
                code = await self._group.heartbeat(self.generation, place.member, seconds=seconds)
            except KeelmanError:
                code = codes.COORDINATOR_NOT_AVAILABLE
            if self.place is place:
                self._answered(code, sent, events)

    def _answered(self, code: int, sent: float, events: GroupEvents) -> None:
        clock = self._clock
        final = code in (codes.NONE, codes.REBALANCE_IN_PROGRESS)
        if final or (code == codes.ILLEGAL_GENERATION and self._joining):
            if clock.failing:
                log.info("group_answers", group=self._group_id)
            clock.answered(sent)
            if code == codes.REBALANCE_IN_PROGRESS and not self._joining:
                self.request_rejoin()
        elif code == codes.UNKNOWN_MEMBER:
            self._forget(events)
        elif code == codes.ILLEGAL_GENERATION:
            self._lose("the group continued without it", events)
        else:
            if not clock.failing:
                log.info("group_unanswered", group=self._group_id, code=code)
            clock.unanswered()
            if clock.over:
                self._lose("the group's coordinator does not answer", events)

    async def leave(self) -> None:
        """Leaves the group at once, so that no other member waits for this one."""
        if not self.member:
            return
        try:
            async with asyncio.timeout(3):
                await self._group.leave(self.member)
        except (Unavailable, TimeoutError):
            log.info("leave_unanswered", group=self._group_id)
        else:
            self._on_member("", False)
        self.member, self.place = "", None

    async def step_aside(self) -> None:
        """Leaves the group until the next join, so that no other member waits for this one. Its work must have
        ended."""
        log.warning("stepping_aside", group=self._group_id, member=self.member)
        await self.leave()
        self.lost, self.rejoin = True, True


def _decoded(members: Sequence[tuple[str, bytes]]) -> dict[str, Metadata]:
    return {member: decode_metadata(raw) for member, raw in members}


def _encoded(assignments: Mapping[str, MemberAssignment]) -> list[tuple[str, bytes]]:
    return [(member, encode_assignment(assignment)) for member, assignment in assignments.items()]


def allocation(works: frozenset[Work], place: GroupPlace | None, offset: int) -> MemberAssignment | None:
    """Returns the work that a member reports as running; None for nothing."""
    if not works or place is None:
        return None
    assignment = place.assignment
    return MemberAssignment(assignment.leader, assignment.leader_url, offset, tuple(sorted(works)))
