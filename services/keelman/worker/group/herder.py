"""One thread of control: takes its place in the group, catches up, serves requests, starts and stops work."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from keelman.kafka.groups.connect_protocol import Metadata, OwnFields
from keelman.model.errors import Conflict, DeadlineExceeded, Exhausted, KeelmanError, Unavailable
from keelman.model.work import Work
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings, first_of, wait_or_stop
from keelman.worker import meant_member
from keelman.worker.errors import Elsewhere
from keelman.worker.group.leader import GroupLeader
from keelman.worker.group.membership import GroupPlace, Membership, allocation
from keelman.worker.group.requests import DecidedChange, Request, WaitingRequests
from keelman.worker.group.session_key import keep_session_key
from keelman.worker.group.shared_addresses import SharedAddresses
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks.owned_work import OwnedWork

T = TypeVar("T")
log = get_logger()
IDLE_SECONDS = 5.0
SOON_SECONDS = 0.05
LEAVE_SECONDS = 3.0
SERVE_SECONDS = 1.0


class Herder:
    """The worker's main loop. `run()` runs it; `call()` has something done in its thread of control."""

    def __init__(
        self,
        store: WorkerStore,
        membership: Membership,
        leader: GroupLeader,
        owned: OwnedWork,
        *,
        url: str,
        wake: asyncio.Event,
        unfit: Callable[[], str] = str,
    ) -> None:
        """`unfit` tells why this worker takes no tasks, empty while it takes them."""
        self.store = store
        self.membership = membership
        self.leader = leader
        self.owned = owned
        self.url = url
        self._wake = wake
        self._unfit = unfit
        self._said_fit = False  # as last sent to the group
        self.requests = WaitingRequests(store.config_topic, self.require_leader)
        self._leaving = False
        self._known: tuple[frozenset[Work], dict[str, str]] = (frozenset(), {})
        self._rejoin_at: float | None = None
        self._losses = 0
        self._behind = 0  # times in a row that the config topic could not be read to its end
        self.joined = asyncio.Event()
        self.shared = SharedAddresses(membership.present, session=store.properties.session_ms / 1000)

    @property
    def place(self) -> GroupPlace | None:
        """The present place in the group, None before the first and after a loss."""
        return self.membership.place

    @property
    def leader_url(self) -> str:
        """The URL of the group's leader, as far as this worker knows; empty while it has no place."""
        place = self.membership.place
        return place.assignment.leader_url if place else ""

    def require_leader(self) -> None:
        """Raises Elsewhere unless this worker leads."""
        place = self.membership.place
        if place is None or not place.leader:
            raise Elsewhere(self.leader_url)

    def leads(self) -> bool:
        """Returns whether this worker certainly leads: it has its place, and the group confirms it."""
        return self.membership.leads

    async def call(self, operation: Callable[[], Awaitable[T]], *, seconds: float) -> T:
        """Has the operation done between other things, once this worker has its place; raises the operation's errors.

        Raises DeadlineExceeded when it did not begin in time; then it never begins. Waits for an operation that has
        begun: it calls `requests.require_time` before it writes. Raises Unavailable while the brokers refuse the group.
        """
        return cast(T, await self._done(Request(time.monotonic() + seconds, operation)))

    async def change(self, connector: str, decide: Callable[[], DecidedChange[T]], *, seconds: float) -> T:
        """As `call`, for a change of a connector that only the leader writes, together with the changes of others.

        `decide` is called with the config topic read to its end. A refusal, of it or of its records, concerns this
        request only. Raises Elsewhere too, Conflict when another worker leads by now, Exhausted for a record that is
        too large.
        """
        request = Request(time.monotonic() + seconds, connector=connector, decide=decide)
        return cast(T, await self._done(request))

    async def _done(self, request: Request) -> Any:
        if self.membership.problem:
            raise Unavailable(self.membership.problem)
        if self._leaving or not meant_member.meant_for(self.membership.member):
            raise Elsewhere("")
        self._wake.set()
        return await self.requests.done(request)

    def on_refused(self, problem: str) -> None:
        """Fails all waiting requests: the brokers refuse the group for a reason that does not pass by itself."""
        self.requests.refuse_all(lambda: Unavailable(problem))

    def on_lost(self, reason: str) -> None:
        """Has the statuses show at once that the group has lost this worker."""
        self.owned.lose(reason)

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set: then drains, leaves the group and returns."""
        await first_of(self.store.read_all(), stop.wait())
        if stop.is_set():
            return
        self.store.config.restarts.clear()  # orders of the past
        await self.membership.replace_predecessors(self.url)
        backoff = Backoff(first=0.1, most=2.0)
        async with Siblings() as siblings:
            self.owned.tasks.begin(siblings)
            self.leader.begin(siblings)
            while not stop.is_set():
                self._wake.clear()
                try:
                    pause = await self._turn(stop)
                    backoff.reset()
                except (Unavailable, DeadlineExceeded, Conflict, Exhausted) as error:
                    if backoff.is_new(error.message):
                        log.warning("turn_failed", error=error.message)
                    pause = backoff.next()
                await wait_or_stop(self._wake, pause)
            # No waiting request has begun: another worker, which leads in a moment, can do it.
            self._leaving = True
            self.requests.refuse_all(lambda: Elsewhere(""))
            await self._leave()

    async def _turn(self, stop: asyncio.Event) -> float:
        """Does one round of everything; returns for how long there is nothing to do."""
        await self._drop_if_lost()
        if self._rejoin_at is not None and time.monotonic() >= self._rejoin_at:
            self._rejoin_at, self.membership.rejoin = None, True
        while self.membership.rejoin and not stop.is_set():
            await self._join(stop)
        await self._serve()
        await self.shared.look()
        place = self.membership.place
        leads = self.membership.leads
        if place is not None and leads:
            self.leader.ask_again(self.store.config.restarts)
            await self.leader.reconfigure()
            self.leader.clear_statuses()
            self.leader.report_unplaced(place.generation)
        soon = leads and self.leader.new_tasks_soon()
        if not soon and self._shared() != self._known:
            self._known = self._shared()
            self.membership.request_rejoin()
        if self._said_fit == bool(self._unfit()):
            self.membership.request_rejoin()
        self.owned.follow()
        self._measure()
        if self.membership.rejoin or self.requests or self.owned.busy or (leads and self.leader.busy):
            return 0.0 if self.membership.healthy else SOON_SECONDS
        return min(SOON_SECONDS if soon else IDLE_SECONDS, self._pause(leads=leads))

    def _pause(self, *, leads: bool) -> float:
        """Returns the seconds until something is due: an overdue connector may still have to wait for its values."""
        rejoin = IDLE_SECONDS if self._rejoin_at is None else max(0.0, self._rejoin_at - time.monotonic())
        again = max(SOON_SECONDS, self.leader.again_seconds()) if leads else IDLE_SECONDS
        return min(IDLE_SECONDS, rejoin, again)

    async def _join(self, stop: asyncio.Event) -> None:
        await self._catch_up()
        self._known = self._shared()
        self.owned.prune()
        before = self.membership.place
        place = await self._await_join(stop)
        if place is None:
            return
        if await self._drop_if_lost():
            self.membership.rejoin = True  # the leader relied on this worker's metadata about its work
        assignment = place.assignment
        leads_anew = place.leader and not place.leads_since(before)
        if not place.leader:
            self.leader.resign()
        elif leads_anew:
            self.leader.start_anew()
        counts = {"new": len(assignment.assigned), "revoked": len(assignment.revoked)}
        log.info("joined", member=place.member, generation=place.generation, leader=place.leader, **counts)
        if assignment.error:
            await self.store.config_topic.read()
            self.membership.rejoin = True
            return
        self.shared.suspect(self._suspects(place))
        while self.store.config.offset < assignment.config_offset:
            await self.store.config_topic.read()
        if self.store.config.offset == assignment.config_offset:
            self._known = self._shared()  # shared out by the leader, which knew more than this worker did at its join
        await self.owned.take(assignment.assigned, assignment.revoked)
        self.owned.follow()  # work that no worker copies meanwhile need not wait for the leader
        self._rejoin_at = time.monotonic() + assignment.delay_ms / 1000 if assignment.delay_ms else None
        if assignment.revoked:
            self.membership.rejoin = True
        self.joined.set()
        self._wake.set()
        if leads_anew:
            try:
                await self.store.config_topic.claim()
                await keep_session_key(self.store)  # as Connect, before any request is served
            except Unavailable as error:  # the first write claims, or raises
                log.warning("not_claimed", error=error.message)

    def _suspects(self, place: GroupPlace) -> list[str]:
        """Returns addresses that more than one member has in this round, as this worker sees it."""
        if place.leader:
            return [url for url, members in Counter(self.leader.member_urls).items() if members > 1]
        return [self.url] if place.assignment.leader_url == self.url else []

    async def _drop_if_lost(self) -> bool:
        """Cuts everything when the group has lost this worker since the last look; returns whether it has."""
        if self.membership.losses == self._losses:
            return False
        self._losses = self.membership.losses
        self.requests.refuse_all(lambda: Elsewhere(""))  # their callers may have gone to the next leader
        await self.owned.drop_all()
        self.store.status_topic.writer.forget()
        return True

    async def _catch_up(self) -> None:
        """Reads the config topic to its end before a join.

        A worker that twice cannot do so leaves: the others would wait for it. It comes back as soon as it can.
        """
        try:
            await self.store.config_topic.read(seconds=self.store.properties.sync_ms / 1000)
        except (DeadlineExceeded, Unavailable):
            self._behind += 1
            if self._behind > 1 and self.membership.healthy:
                self.owned.lose("it cannot read the config topic to its end")
                await self.owned.drop_all()
                self.store.status_topic.writer.forget()
                await self.membership.step_aside()
            raise
        self._behind = 0

    def _shared(self) -> tuple[frozenset[Work], dict[str, str]]:
        """Returns the work that is shared out, and the placements."""
        return self.store.config.work(), dict(self.store.config.placements)

    def _measure(self) -> None:
        now, measured = time.monotonic(), self.owned.tasks.measured
        measured.sample(now, self.owned.works)
        if measured.has_news(now) and self.membership.healthy:
            self.membership.request_rejoin()

    async def _await_join(self, stop: asyncio.Event) -> GroupPlace | None:
        places: list[GroupPlace] = []

        async def join() -> None:
            places.append(await self.membership.join(lambda: self._metadata(leaving=False), self.leader.share, self))

        await first_of(join(), stop.wait())
        return places[0] if places else None

    def _metadata(self, *, leaving: bool) -> Metadata:
        works = self.owned.works if self.membership.losses == self._losses else frozenset()
        offset = self.store.config.offset
        weights = self.owned.tasks.measured.weights(time.monotonic(), works)
        unfit = self._unfit()
        self._said_fit = not unfit
        own = OwnFields(self.store.properties.labels, len(works), leaving, weights, unfit)
        return Metadata(self.url, offset, allocation(works, self.membership.place, offset), own)

    async def _serve(self) -> None:
        """Serves requests first, for a while: the tasks of many new connectors then begin together, in few rounds."""
        until = time.monotonic() + SERVE_SECONDS
        while self._may_serve() and time.monotonic() < until and await self.requests.more():
            if self._may_serve():  # still, if one was waited for
                await self.requests.serve()

    def _may_serve(self) -> bool:
        return self.membership.healthy and not self.membership.rejoin

    async def _leave(self) -> None:
        """Drains, announces that it leaves so that others take over at once, and leaves."""
        place = self.membership.place
        alone = place is not None and place.leader and len(self.leader.member_urls) <= 1
        await self.owned.end_all(last=alone and not self.membership.lost)
        await self.store.status_topic.writer.flush(seconds=LEAVE_SECONDS)
        if place is not None and not alone and not self.membership.lost:
            try:
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self.membership.join(lambda: self._metadata(leaving=True), self.leader.share, self)
            except (TimeoutError, KeelmanError) as error:
                log.info("leaving_unsaid", error=str(error))
        await self.membership.leave()
