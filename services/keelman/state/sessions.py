"""Sessions: one registration of an agent, its heartbeats, its assignments and its reports.

When anything fails the whole session is dropped and the agent opens a new one. A node is offline when nothing was heard
of it for the session time-out, by the monotonic clock; after a start nobody is judged before that time has passed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keelman.api.node.v1 import session_service_pb2 as pb
from keelman.model.errors import Conflict, InvalidArgument, KeelmanError, Unavailable
from keelman.model.names import checked_name
from keelman.model.node import Node, NodeFigures, NodeState
from keelman.model.workload import ProcessState, Workload, WorkloadStatus
from keelman.rpc.times import to_duration
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.state.crash_loops import CrashLoops
from keelman.state.failpoints import hit
from keelman.state.hub import Hub
from keelman.state.nouns import node as nodes
from keelman.state.nouns import workload as workloads
from keelman.state.nouns.node import figures_of
from keelman.state.nouns.workload import assignment_message, status_of
from keelman.state.planning.node_secrets import secrets_of
from keelman.state.snapshot import NODE, SECRET
from keelman.state.store import Store, carried_by, next_session

log = get_logger()
Write = Callable[[pb.OpenSessionResponse], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Session:
    node: str
    number: int
    heard: float
    heard_time: datetime
    write: Write
    figures: NodeFigures | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    why: KeelmanError | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def end(self, why: KeelmanError) -> None:
        self.why = self.why or why
        self.over.set()

    async def send(self, message: pb.OpenSessionResponse) -> None:
        async with self.turn:
            await self.write(message)


class Sessions:
    """All sessions of this process."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        *,
        heartbeat_seconds: float,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._hub = hub
        self._heartbeat = heartbeat_seconds
        self._timeout = timeout_seconds
        self._clock = clock
        self._began = clock()
        self._sessions: dict[str, _Session] = {}
        self._vitals: dict[str, WorkloadStatus] = {}
        self._crash_loops = CrashLoops()

    async def begin(self) -> None:
        """Called once at start: what was known of the nodes is known no longer."""
        async with self._store.write() as tx:
            for name in tx.snapshot.names(NODE):
                if tx.snapshot.node(name).state is not NodeState.EXPECTED:
                    nodes.judge(tx, name, NodeState.UNKNOWN, "the state service restarted a moment ago")
            hit("nodes-doubted")

    async def serve(self, requests: AsyncIterator[pb.OpenSessionRequest], write: Write) -> None:
        """One session, from its registration to its end; raises what ended it, if an error did."""
        session = await self._register(requests, write)
        log.info("session_opened", node=session.node, session=session.number)
        try:
            await session.send(
                pb.OpenSessionResponse(
                    welcome=pb.Welcome(
                        session=session.number,
                        heartbeat_interval=to_duration(self._heartbeat),
                        session_timeout=to_duration(self._timeout),
                    )
                )
            )
            await first_of(self._receive(session, requests), self._assign(session), session.over.wait())
        finally:
            log.info("session_closed", node=session.node, session=session.number, why=str(session.why or ""))
        if session.why is not None:
            raise session.why

    async def judge(self) -> None:
        """Stores as offline every node that was not heard of for the session time-out. Called every few seconds."""
        now = self._clock()
        snapshot = self._store.snapshot
        for gone in self._vitals.keys() - snapshot.workloads.keys():
            del self._vitals[gone]
            self._crash_loops.forget(gone)
        for node in list(snapshot.nodes.values()):
            session = self._sessions.get(node.name)
            silent = now - (self._began if session is None else session.heard)
            if node.state in (NodeState.OFFLINE, NodeState.EXPECTED) or silent <= self._timeout:
                continue
            message = f"no heartbeat for {self._timeout:g} s"
            async with self._store.write() as tx:
                if self._sessions.get(node.name) is session and node.name in tx.snapshot.nodes:
                    nodes.judge(tx, node.name, NodeState.OFFLINE, message)
                    self._sessions.pop(node.name, None)
            if session is not None:
                session.end(Unavailable(f"node {node.name}: {message}", reason="SESSION_LAPSED"))
            log.warning("node_offline", node=node.name)

    def close(self) -> None:
        """Ends all sessions, since this process ends."""
        for session in self._sessions.values():
            session.end(Unavailable("the state service is stopping", reason="STOPPING"))

    def alive(self, node: Node) -> Node:
        """The node with the time of its last heartbeat and the figures in it."""
        session = self._sessions.get(node.name)
        if session is None:
            return node
        return dataclasses.replace(node, heartbeat_time=session.heard_time, figures=session.figures)

    def vital(self, workload: Workload) -> Workload:
        """The workload with the memory and the time that were reported last; these are not worth a write each."""
        vital, status = self._vitals.get(workload.name), workload.status
        if vital is None or status is None or (vital.generation, vital.pid) != (status.generation, status.pid):
            return workload
        fresh = dataclasses.replace(status, memory_bytes=vital.memory_bytes, observe_time=vital.observe_time)
        return dataclasses.replace(workload, status=fresh)

    async def _register(self, requests: AsyncIterator[pb.OpenSessionRequest], write: Write) -> _Session:
        first = await anext(aiter(requests), None)
        if first is None or first.WhichOneof("message") != "registration":
            raise InvalidArgument.of("message", "" if first is None else first.WhichOneof("message"), "a registration")
        given = first.registration
        checked_name("registration.node", given.node)
        host, _, port = given.agent_address.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgument.of("registration.agent_address", given.agent_address, "host:port")
        if any(c.isspace() or c in "/," for c in given.node_address):
            raise InvalidArgument.of("registration.node_address", given.node_address, "an address or a host's name")
        async with self._store.write() as tx:
            number = await next_session(tx)
            hit("session-numbered")
            node = Node(
                name=given.node, uid="", create_time=tx.now, update_time=tx.now, state=NodeState.ONLINE,
                agent_address=given.agent_address, cpus=given.cpus, memory_bytes=given.memory_bytes,
                version=given.version, address=given.node_address, session=number, incarnation=given.incarnation,
            )  # fmt: skip
            nodes.register(tx, node)
            hit("session-registered")
            older = self._sessions.get(given.node)
            session = _Session(given.node, number, self._clock(), datetime.now(UTC), write)
            self._sessions[given.node] = session
        hit("session-begun")
        if older is not None:
            older.end(
                Conflict(f"node {given.node}: session {older.number} gave way to {number}", reason="SESSION_REPLACED")
            )
        return session

    async def _receive(self, session: _Session, requests: AsyncIterator[pb.OpenSessionRequest]) -> None:
        async for message in requests:
            session.heard, session.heard_time = self._clock(), datetime.now(UTC)
            match message.WhichOneof("message"):
                case "heartbeat":
                    if message.heartbeat.HasField("figures"):
                        session.figures = figures_of(message.heartbeat.figures)
                    reply = pb.HeartbeatReply(heartbeat_interval=to_duration(self._heartbeat))
                    await session.send(pb.OpenSessionResponse(heartbeat_reply=reply))
                case "report":
                    await self._take_in(session, message.report)
                    received = pb.ReportReceived(number=message.report.number)
                    await session.send(pb.OpenSessionResponse(report_received=received))
                case other:
                    raise InvalidArgument.of("message", other or "", "heartbeat or report")

    async def _assign(self, session: _Session) -> None:
        """Sends the complete set, then what differs from what was sent: it looks at the whole state at each wake."""
        sent: dict[str, Workload] = {}
        version = 0
        given: pb.NodeSecrets | None = None
        with self._hub.subscribe(carried_by(session.node), SECRET) as changed:
            while True:
                changed.clear()
                given = await self._give_secrets(session, given)
                revision, wanted = self._store.revision, self._carried(session.node)
                # A name that is used again must be forgotten before it is sent, or its generation would seem old.
                reused = [n for n, w in wanted.items() if n in sent and sent[n].uid != w.uid]
                removed = sorted((sent.keys() - wanted.keys()) | set(reused))
                news = [w for n, w in sorted(wanted.items()) if n in reused or _differs(sent.get(n), w)]
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
                sent = wanted
                if news:
                    hit("assignments-sent")
                await changed.wait()

    async def _give_secrets(self, session: _Session, given: pb.NodeSecrets | None) -> pb.NodeSecrets:
        """Sends the secrets of the node's workers where these are others than were given; returns them."""
        secrets = secrets_of(session.node, self._store.snapshot)
        if secrets != given:
            await session.send(pb.OpenSessionResponse(secrets=secrets))
        return secrets

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
        statuses = {
            n: self._crash_loops.shown(n, s, self._store.snapshot.workloads.get(n)) for n, s in statuses.items()
        }
        if not _changes(self._carried(session.node), statuses, complete=report.complete):
            return
        hit("report-come")
        async with self._store.write() as tx:
            # A newer session may have come meanwhile, perhaps at another process: its reports are the newer ones.
            node = tx.snapshot.nodes.get(session.node)
            if node is None or node.session != session.number:
                session.end(Conflict(f"node {session.node}: a newer session stands", reason="SESSION_REPLACED"))
                return
            present = {w.name: w for w in tx.snapshot.workloads_on(session.node)}
            for workload in _changes(present, statuses, complete=report.complete):
                workloads.save(tx, workload)
                hit("report-folded")
        hit("report-stored")

    def _carried(self, node: str) -> dict[str, Workload]:
        return {w.name: w for w in self._store.snapshot.workloads_on(node)}


def _changes(
    present: Mapping[str, Workload], statuses: Mapping[str, WorkloadStatus], *, complete: bool
) -> list[Workload]:
    """The workloads whose reported status is another one than the stored, by name."""
    changed = []
    for name, workload in sorted(present.items()):
        status = statuses.get(name)
        if status is None:
            if complete and workload.status is not None:
                changed.append(dataclasses.replace(workload, status=None))
        elif _essence(status) != _essence(workload.status):
            ran = workload.has_run or status.state is ProcessState.RUNNING
            changed.append(dataclasses.replace(workload, status=status, has_run=ran))
    return changed


def _essence(status: WorkloadStatus | None) -> WorkloadStatus | None:
    return None if status is None else dataclasses.replace(status, memory_bytes=0, observe_time=None)


def _differs(old: Workload | None, new: Workload) -> bool:
    return old is None or (old.uid, old.generation, old.goal, old.spec) != (
        new.uid, new.generation, new.goal, new.spec,
    )  # fmt: skip
