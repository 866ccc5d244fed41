"""Keeps the sessions of agents: registrations, their heartbeats, their assignments and their reports.

When anything fails the whole session is dropped and the agent opens a new one. A node is offline when it has reported
to no state service for the session time-out, by the monotonic clock of the leader; until the leader itself has listened
for that long, no node is judged.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from keelman.api.node.v1 import session_service_pb2 as pb
from keelman.connect.config.providers import is_named
from keelman.model.errors import AlreadyExists, Conflict, InvalidArgument, KeelmanError, Unavailable
from keelman.model.node import Node, NodeState
from keelman.model.workload import Workload, WorkloadStatus
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.state.database.failpoints import hit
from keelman.state.nouns import node as nodes
from keelman.state.nouns import workload as workloads
from keelman.state.nouns.node import figures_of
from keelman.state.nouns.node_secrets import secrets_of
from keelman.state.nouns.workload import assignment_message, status_of
from keelman.state.replicas.heard import Heard
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import NODE, SECRET, WORKLOAD
from keelman.state.resources.store import ResourceStore, carried_by, next_session
from keelman.state.resources.transaction import Change, Transaction
from keelman.state.sessions.crash_loops import CrashLoops
from keelman.state.sessions.registration import check_addresses, heartbeat_reply, node_of, registration_in, welcome
from keelman.state.sessions.workload_changes import changes_of, differs
from keelman.state.sessions.write_queue import WriteQueue

log = get_logger()
HELD_BEATS = 3
"""An agent silent for this number of heartbeats gives way to another agent of its node's name."""
LATE_BEATS = 1.5
"""The nodes are looked at each half heartbeat; a look that comes so many after the last shows that this is behind."""
Write = Callable[[pb.OpenSessionResponse], Awaitable[None]]
Check = Callable[[str], Awaitable[None]]
"""Raises a KeelmanError for a node name that is not the caller's."""


@dataclass(slots=True, eq=False)
class _Session:
    node: str
    number: int
    write: Write
    over: asyncio.Event = field(default_factory=asyncio.Event)
    why: KeelmanError | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    reports: asyncio.Queue[pb.WorkloadReport] = field(default_factory=lambda: asyncio.Queue(1))
    """Those not stored yet: an agent sends the next one when the last is stored."""
    given: pb.NodeSecrets | None = None
    """The last secrets sent for the node's workers."""

    def reads(self, secret: str) -> bool:
        """Returns whether a worker of the node may read a secret of this name."""
        return self.given is not None and any(is_named(secret, worker.names) for worker in self.given.workers)

    def end(self, error: KeelmanError) -> None:
        self.why = self.why or error
        self.over.set()

    async def send(self, message: pb.OpenSessionResponse) -> None:
        async with self.turn:
            await self.write(message)


@dataclass(slots=True)
class Sessions:
    """All sessions of this process."""

    store: ResourceStore
    hub: Hub
    heard: Heard
    _: KW_ONLY
    heartbeat_seconds: float
    timeout_seconds: float
    bucket_keys: pb.BucketKeys | None = None
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _vitals: dict[str, WorkloadStatus] = field(default_factory=dict)
    _crash_loops: CrashLoops = field(default_factory=CrashLoops)
    _closed: dict[str, int] = field(default_factory=dict)
    """The number of each node's last session that ended here."""
    _refused: dict[str, str] = field(default_factory=dict)
    """The incarnation of the last refused agent, by node: each is logged once."""
    _writes: WriteQueue = field(init=False)
    _judged: float | None = None
    """When the last look at all nodes ended, by the clock of `heard`."""

    def __post_init__(self) -> None:
        self._writes = WriteQueue(self.store, self.heard.clock)

    async def begin(self) -> None:
        """Called once at the start of the only state service: the nodes' states are unknown again."""
        async with self.store.write() as tx:
            for name in tx.snapshot.names(NODE):
                if tx.snapshot.node(name).state is not NodeState.EXPECTED:
                    nodes.judge(tx, name, NodeState.UNKNOWN, "the state service restarted a moment ago")
            hit("nodes-doubted")

    async def serve(
        self, requests: AsyncIterator[pb.OpenSessionRequest], write: Write, check: Check | None = None
    ) -> None:
        """Serves one session, from its registration to its end; raises the error that ended it, if any. `check` may
        refuse the node's name."""
        session = await self._register(requests, write, check)
        log.info("session_opened", node=session.node, session=session.number)
        try:
            await session.send(welcome(session.number, self.heartbeat_seconds, self.timeout_seconds))
            await first_of(
                self._receive(session, requests),
                self._store_reports(session),
                self._assign(session),
                session.over.wait(),
            )
        finally:
            if self._sessions.get(session.node) is session:
                del self._sessions[session.node]
            self._closed[session.node] = session.number
            log.info("session_closed", node=session.node, session=session.number, why=str(session.why or ""))
        if session.why is not None:
            raise session.why

    async def judge(self, store: ResourceStore) -> None:
        """Stores every node as offline that has not reported for the session time-out, with the store of the leader,
        which calls this every half heartbeat.

        While this process itself is behind, none is judged: reports may be waiting to be read. Silence counts again
        from then on.
        """
        now, before = self.heard.clock(), self._judged
        if self.is_behind() or (before is not None and now - before > LATE_BEATS * self.heartbeat_seconds):
            self.heard.begin(True)
        try:
            await self._judge(store)
        finally:
            self._judged = self.heard.clock()

    def is_behind(self) -> bool:
        """Returns whether registrations or reports have waited for longer than a heartbeat to be stored."""
        return self._writes.waited_seconds > self.heartbeat_seconds

    async def _judge(self, store: ResourceStore) -> None:
        for node in list(store.snapshot.nodes.values()):
            if node.state in (NodeState.OFFLINE, NodeState.EXPECTED) or self._is_heard(node.name):
                continue
            async with store.write() as tx:
                # If another state service has the session, a report may have come meanwhile.
                if node.name in tx.snapshot.nodes and not self._is_heard(node.name):
                    nodes.judge(tx, node.name, NodeState.OFFLINE, f"no heartbeat for {self.timeout_seconds:g} s")
            log.warning("node_offline", node=node.name)

    def _is_heard(self, node: str) -> bool:
        return self.heard.silence(node) <= self.timeout_seconds

    def changed(self, changes: Sequence[Change]) -> None:
        """Ends sessions that are no longer their nodes' newest, and those of nodes judged offline: a living agent opens
        another. Forgets deleted resources. The store calls it after each commit."""
        for change in changes:
            if change.noun == WORKLOAD and change.new is None:
                self._vitals.pop(change.name, None)
                self._crash_loops.forget(change.name)
            if change.noun == SECRET:
                self.hub.wake(
                    _given_secrets(session.node) for session in self._sessions.values() if session.reads(change.name)
                )
            if change.noun != NODE:
                continue
            if change.new is None:
                self.heard.forget(change.name)
                self._closed.pop(change.name, None)
                self._refused.pop(change.name, None)
                continue
            session, node = self._sessions.get(change.name), change.new
            if change.old is None or node.session > change.old.session:
                self.heard.note(node.name)  # a registration, perhaps with another state service
            if session is None:
                continue
            if node.session > session.number:
                reason = f"node {node.name}: session {session.number} gave way to {node.session}"
                session.end(Conflict(reason, reason="SESSION_REPLACED"))
            elif node.state is NodeState.OFFLINE and node.session == session.number:
                self._sessions.pop(node.name, None)
                session.end(Unavailable(f"node {node.name}: {node.message}", reason="SESSION_LAPSED"))

    def close(self) -> None:
        """Ends all sessions, since this process ends."""
        self._end_all(Unavailable("the state service is stopping", reason="STOPPING"))

    def cut_off(self) -> None:
        """Ends all sessions, since the other state services do not learn of reports here: they would take these nodes
        for silent. The agents go to another."""
        self._end_all(Unavailable("the state service does not reach its database", reason="DATABASE_UNAVAILABLE"))

    def _end_all(self, error: KeelmanError) -> None:
        for session in self._sessions.values():
            session.end(error)

    def alive(self, node: Node) -> Node:
        """Returns the node with the time of its last heartbeat and the figures in it."""
        beat = self.heard.of(node.name)
        if beat is None:
            return node
        return dataclasses.replace(node, heartbeat_time=beat.time, figures=beat.figures)

    def vital(self, workload: Workload) -> Workload:
        """Returns the workload with its last reported memory and time; these are not worth a write each."""
        vital, status = self._vitals.get(workload.name), workload.status
        if vital is None or status is None or (vital.generation, vital.pid) != (status.generation, status.pid):
            return workload
        fresh = dataclasses.replace(status, memory_bytes=vital.memory_bytes, observe_time=vital.observe_time)
        return dataclasses.replace(workload, status=fresh)

    async def _register(
        self, requests: AsyncIterator[pb.OpenSessionRequest], write: Write, check: Check | None
    ) -> _Session:
        registration = registration_in(await anext(aiter(requests), None))
        if check is not None:
            await check(registration.node)
        check_addresses(registration)
        self._check_free(registration)
        number = await self._stored(registration, write)
        newest = self.store.snapshot.nodes.get(registration.node)
        if newest is not None and newest.session > number:
            raise Conflict(f"node {newest.name}: a newer session replaced it", reason="SESSION_REPLACED")
        session = self._sessions[registration.node] = _Session(registration.node, number, write)
        self.heard.note(registration.node, is_own=True)
        hit("session-begun")
        return session

    async def _stored(self, registration: pb.Registration, write: Write) -> int:
        """Returns the session's number once the node is stored.

        Tells the agent with each heartbeat that its registration waits: an agent without an answer gives up and comes
        again, which would add to the load that it waits for.
        """

        async def register(tx: Transaction) -> int:
            number = await next_session(tx)
            hit("session-numbered")
            nodes.register(tx, node_of(registration, number, tx.now))
            hit("session-registered")
            return number

        storing = asyncio.ensure_future(self._writes.write(register))
        try:
            while not storing.done():
                if registration.node in self.store.snapshot.nodes:
                    self.heard.note(registration.node, is_own=True)
                await asyncio.wait((storing,), timeout=self.heartbeat_seconds)
                if not storing.done():
                    await write(heartbeat_reply(self.heartbeat_seconds))
        finally:
            storing.cancel()
            await asyncio.wait((storing,))
        return storing.result()

    def _check_free(self, registration: pb.Registration) -> None:
        """Raises AlreadyExists while another agent of this name reports. An agent that was started again no longer
        does, or its former session has ended here."""
        node = self.store.snapshot.nodes.get(registration.node)
        if node is None or node.state is not NodeState.ONLINE or node.incarnation == registration.incarnation:
            return
        silent = self.heard.silence(registration.node) > HELD_BEATS * self.heartbeat_seconds
        if silent or self._closed.get(registration.node) == node.session:
            return
        error = AlreadyExists(
            f"node {registration.node!r} has an agent, which serves at {node.agent_address}: stop that one first, or "
            "give this one another name (agent.node)",
            reason="NODE_TAKEN",
            metadata={"node": registration.node, "agent_address": node.agent_address},
        )
        if self._refused.get(registration.node) != registration.incarnation:
            self._refused[registration.node] = registration.incarnation
            log.warning(
                "agent_refused", node=registration.node, agent_address=registration.agent_address, error=error.message
            )
        raise error

    async def _receive(self, session: _Session, requests: AsyncIterator[pb.OpenSessionRequest]) -> None:
        async for message in requests:
            has_figures = message.WhichOneof("message") == "heartbeat" and message.heartbeat.HasField("figures")
            figures = figures_of(message.heartbeat.figures) if has_figures else None
            self.heard.note(session.node, figures, is_own=True)
            match message.WhichOneof("message"):
                case "heartbeat":
                    await session.send(heartbeat_reply(self.heartbeat_seconds))
                case "report":
                    await session.reports.put(message.report)
                case other:
                    raise InvalidArgument.of("message", other or "", "heartbeat or report")

    async def _store_reports(self, session: _Session) -> None:
        """Stores reports and says so. Heartbeats are read and answered meanwhile, however long that waits."""
        while True:
            report = await session.reports.get()
            await self._take_in(session, report)
            received = pb.ReportReceived(number=report.number)
            await session.send(pb.OpenSessionResponse(report_received=received))

    async def _assign(self, session: _Session) -> None:
        """Sends the complete set, then the differences to the last sent state: it compares the whole state at each
        wake."""
        sent: dict[str, Workload] = {}
        version = 0
        with self.hub.subscribe(carried_by(session.node), _given_secrets(session.node)) as changed:
            while True:
                changed.clear()
                await self._give_secrets(session)
                revision, carried = self.store.revision, self._carried(session.node)
                # A name that is used again must be forgotten before it is sent, or its generation would seem old.
                reused = [n for n, w in carried.items() if n in sent and sent[n].uid != w.uid]
                removed = sorted((sent.keys() - carried.keys()) | set(reused))
                news = [w for n, w in sorted(carried.items()) if n in reused or differs(sent.get(n), w)]
                if version == 0 or removed or news:
                    hit("assignments-due")
                if version == 0:
                    await self._send_assignments(session, 0, revision, news, (), complete=True)
                    version = revision
                elif removed or news:
                    if reused:
                        await self._send_assignments(session, version, revision, (), removed)
                        version, removed = revision, []
                    await self._send_assignments(session, version, revision, news, removed)
                    version = revision
                sent = carried
                if news:
                    hit("assignments-sent")
                await changed.wait()

    async def _give_secrets(self, session: _Session) -> None:
        """Sends the secrets of the node's workers if they differ from the last ones sent."""
        secrets = secrets_of(session.node, self.store.snapshot, self.bucket_keys)
        if secrets != session.given:
            session.given = secrets
            await session.send(pb.OpenSessionResponse(secrets=secrets))

    async def _send_assignments(
        self,
        session: _Session,
        old: int,
        new: int,
        workloads: list[Workload] | tuple[()],
        removed: list[str] | tuple[()],
        *,
        complete: bool = False,
    ) -> None:
        assignments = pb.Assignments(
            complete=complete,
            from_version=old,
            to_version=new,
            workloads=[assignment_message(w) for w in workloads],
            removed=removed,
        )
        await session.send(pb.OpenSessionResponse(assignments=assignments))

    async def _take_in(self, session: _Session, report: pb.WorkloadReport) -> None:
        statuses = {name: status_of(status) for name, status in report.statuses.items()}
        self._vitals.update(statuses)
        statuses = {n: self._crash_loops.shown(n, s, self.store.snapshot.workloads.get(n)) for n, s in statuses.items()}
        if not changes_of(self._carried(session.node), statuses, complete=report.complete):
            return
        hit("report-come")

        async def fold(tx: Transaction) -> None:
            # A newer session may have come meanwhile, perhaps at another process: its reports are the newer ones.
            node = tx.snapshot.nodes.get(session.node)
            if node is None or node.session != session.number:
                session.end(Conflict(f"node {session.node}: a newer session replaced it", reason="SESSION_REPLACED"))
                return
            present = {w.name: w for w in tx.snapshot.workloads_on(session.node)}
            for workload in changes_of(present, statuses, complete=report.complete):
                if workload.generation != present[workload.name].generation:
                    log.warning("database_is_older", workload=workload.name, generation=workload.generation)
                workloads.save(tx, workload)
                hit("report-folded")

        await self._writes.write(fold)
        hit("report-stored")

    def _carried(self, node: str) -> dict[str, Workload]:
        return {w.name: w for w in self.store.snapshot.workloads_on(node)}


def _given_secrets(node: str) -> Hashable:
    """Returns the subject of the secrets that a node's workers may read."""
    return ("secrets given to", node)
